import type { Duty } from '#duty.ts'

/** Makes and drops keys as their age demands; a new one is announced a day before it is used. */
export const rotateKeys: Duty = {
  name: 'keys.rotate',
  everyMs: 60_000,
  runsOn: 'one node',
  run: async ({ keyring }, lease) => ({ keys: await keyring.rotate(lease.tx) }),
}

/** Reads the keys that another node has made or dropped. */
export const readKeys: Duty = {
  name: 'keys.read',
  everyMs: 60_000,
  runsOn: 'every node',
  run: async ({ keyring }) => ({ keys: await keyring.refresh() }),
}
