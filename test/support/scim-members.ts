// Members of a SCIM group, which are written to the database without requests.
import { randomUUID } from 'node:crypto'
import { type Db, sql } from '#db/sql.ts'

/** Adds the given number of new users to the group. */
export async function setMembers(db: Db, provider: string, group: string, count: number): Promise<void> {
  const now = new Date().toISOString()
  await db.tx(async (tx) => {
    for (let i = 0; i < count; i++) {
      const [id, name] = [randomUUID(), `member-${i}`]
      await tx.run(sql`
        INSERT INTO scim_users (id, provider_uid, user_name, user_name_key, active, resource, create_time, update_time)
        VALUES (${id}, ${provider}, ${name}, ${name}, 1, '{}', ${now}, ${now})`)
      await tx.run(sql`INSERT INTO scim_group_members (group_id, user_id) VALUES (${group}, ${id})`)
    }
  })
}
