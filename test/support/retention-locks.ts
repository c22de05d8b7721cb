// Registry for tests of retention, whose clock they set forward, with a folder for each of them.
import { ok } from './expect.ts'
import { type Client, type Json, roleUids } from './pinfold.ts'
import { type RegistryClient, startRegistry } from './registry.ts'

/** A folder and a repo in it, by their uids, and the name by which one pushes there. */
export type Place = { folder: string; repo: string; name: string }

export async function startPromises() {
  const clock = { now: Date.parse('2026-05-01T10:00:00.000Z') }
  const registry = await startRegistry({ clock: () => new Date(clock.now) })
  const { org, pusher, seed } = registry
  const { uid: ownerUid } = await seed.member(org.uid, roleUids.owner)
  // Tokens live for an hour of that clock.
  const owner = (): Promise<Client> => registry.as(ownerUid)
  const pushing = (): Promise<RegistryClient> => registry.registryAs(pusher.uid)
  let made = 0
  return {
    ...registry,
    clock,
    owner,
    pushing,
    async place(): Promise<Place> {
      const api = await owner()
      const folder: string = ok(await api.post(`/iam/v2/groups/${org.uid}`, { name: `g${++made}` })).uid
      const repo: string = ok(await api.post(`/registry/v2/repos/${folder}`, { name: 'app' })).uid
      return { folder, repo, name: `acme/g${made}/app` }
    },
    /** Answers with the uid of the rule. */
    rule: async (scope: string, says: Json): Promise<string> =>
      ok(await (await owner()).post(`/registry/v2/retentionRules/${scope}`, { mode: 'ENFORCE', ...says })).uid,
  }
}
