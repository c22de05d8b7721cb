// What most tests of the API begin with: a server with one organisation, and people who may do this or that in it.
import { type Client, type Json, roleUids, startPinfold } from './pinfold.ts'

/** With the settings of `startPinfold`; `named` is what the organisation is made with. */
export async function startScene(settings: Parameters<typeof startPinfold>[0] = {}, named: Json = {}) {
  const pinfold = await startPinfold(settings)
  const { as, seed } = pinfold
  const org = await seed.group('', named)
  const member = async (role: string, place: string = org.uid) => as((await seed.member(place, role)).uid)
  return {
    pinfold,
    operator: pinfold.operator,
    org,
    /** Somebody who has the role, and is not staff: in the organisation, or in a folder of it. */
    member,
    /** Somebody with exactly these capabilities in the organisation. */
    async holding(...capabilities: string[]): Promise<Client> {
      return member((await seed.role(org.uid, capabilities)).uid)
    },
    /** Somebody with a valid token and no rights at all. */
    stranger: async () => as((await seed.person()).uid),
    /** The owner of another organisation. */
    foreigner: async () => member(roleUids.owner, (await seed.group()).uid),
  }
}
