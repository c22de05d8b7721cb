import { type Reader, sql, type Tx } from '#db/sql.ts'

export type WitnessKey = { vkey: string; privateKey: Uint8Array }

export function findWitnessKey(reader: Reader): Promise<WitnessKey | undefined> {
  return reader.get(sql`SELECT vkey, private_key AS "privateKey" FROM witness_keys WHERE id = 1`)
}

/** Unless there is one already. */
export async function keepWitnessKey(tx: Tx, { vkey, privateKey }: WitnessKey, now: string): Promise<void> {
  await tx.run(sql`
    INSERT INTO witness_keys (id, vkey, private_key, create_time) VALUES (1, ${vkey}, ${privateKey}, ${now})
        ON CONFLICT (id) DO NOTHING`)
}

/** The newest head that was seen of a log, which nobody else changes until the transaction ends. `root` is base64. */
export async function lockHead(tx: Tx, origin: string, empty: string): Promise<{ size: number; root: string }> {
  const row = await tx.get<{ size: number; root: string }>(sql`
    INSERT INTO witnessed_logs (origin, size, root, seen_time) VALUES (${origin}, 0, ${empty}, '')
        ON CONFLICT (origin) DO UPDATE SET size = witnessed_logs.size
    RETURNING size, root`)
  return row!
}

export async function noteHead(
  tx: Tx,
  origin: string,
  { size, root, time }: { size: number; root: string; time: string },
): Promise<void> {
  await tx.run(sql`
    UPDATE witnessed_logs SET size = ${size}, root = ${root}, seen_time = ${time} WHERE origin = ${origin}`)
}
