// Scene of most tests of the API: a server with one organization, and members with various rights in it.
import { type Client, type Json, roleUids, startPinfold } from './pinfold.ts'

/** Takes the settings of `startPinfold`; `named` has the fields of the organization. */
export async function startScene(settings: Parameters<typeof startPinfold>[0] = {}, named: Json = {}) {
  const pinfold = await startPinfold(settings)
  const { as, seed } = pinfold
  const org = await seed.group('', named)
  const member = async (role: string, place: string = org.uid) => as((await seed.member(place, role)).uid)
  return {
    pinfold,
    operator: pinfold.operator,
    org,
    /** Client with the role, without rights of the operator: in the organization, or in a folder of it. */
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
