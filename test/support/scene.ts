// Server with one organization and members with various rights, for most tests of the API.
import { type Client, type Json, roleUids, startPinfold } from './pinfold.ts'

/** Accepts the options of `startPinfold`. `named` has the fields of the organization. */
export async function startScene(settings: Parameters<typeof startPinfold>[0] = {}, named: Json = {}) {
  const pinfold = await startPinfold(settings)
  const { as, seed } = pinfold
  const org = await seed.group('', named)
  const member = async (role: string, scope: string = org.uid) => as((await seed.member(scope, role)).uid)
  return {
    pinfold,
    operator: pinfold.operator,
    org,
    /** Client with a role in the organization, or in a folder. It has no rights of the operator. */
    member,
    /** Client with exactly these capabilities in the organization. */
    async holding(...capabilities: string[]): Promise<Client> {
      return member((await seed.role(org.uid, capabilities)).uid)
    },
    /** Client with a valid token and no rights at all. */
    stranger: async () => as((await seed.person()).uid),
    /** Owner of another organization. */
    foreigner: async () => member(roleUids.owner, (await seed.group()).uid),
  }
}
