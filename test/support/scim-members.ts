// Members of a pushed group, written without requests.
import { randomUUID } from 'node:crypto'
import { type Db, sql } from '#db/sql.ts'

/** Gives the group as many new people as members. */
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
