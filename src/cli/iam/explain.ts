// Command that explains why an identity has a permission or not, and who could change that.
import { isUid } from '#lib/uid.ts'
import { apiCommand } from '../framework/api-pages.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { exitCodes } from '../framework/cli-error.ts'
import { outputOption } from '../framework/command.ts'
import { findIdentity, groupOf, NothingNamed } from '../framework/names.ts'
import { plain, table } from '../framework/plain-text.ts'
import { registryOf } from '../framework/session.ts'
import { findImage, imageNameOf } from '../registry/image-names.ts'

type Binding = { groupUid: string; groupName?: string; roleName?: string; effect: string }
type Explanation = {
  allowed?: boolean
  bindings?: Binding[]
  sufficientRoles?: { name: string }[]
  grantors?: { identityUid: string; name: string; roleName: string }[]
}

const effects: Record<string, string> = {
  EFFECT_GRANTS: 'gives it',
  EFFECT_ROLE_LACKS_IT: 'the role does not hold it',
  EFFECT_NOT_ACCEPTED: 'counts once the person has accepted the organisation',
  EFFECT_ABOVE_HOME: 'does not count: the identity lives in a folder below',
}

export const explain = apiCommand({
  details: 'Ends with 0 when it may and with 1 when not.',
  arguments: [
    { name: '<place>', summary: 'ORG, ORG/FOLDER or the path of a repository, or a uid' },
    { name: '<who>', summary: 'The identity: by name, ORG/NAME or uid' },
    { name: '<capability>', summary: 'What, such as repo.list or manifest.list' },
  ],
  options: [outputOption],
  async run(api, options, terminal) {
    const [place, capability] = [String(options.place), String(options.capability)]
    const uid = await placeOf(api, place)
    const query = new URLSearchParams({ identityUid: await findIdentity(api, String(options.who)), capability })
    const found = (await api.call('GET', `/control/v1/access/${uid}:explain?${query}`)) as Explanation
    const allowed = found.allowed === true
    const code = allowed ? exitCodes.ok : exitCodes.failed
    if (options.output === 'json') return { json: found, code }
    for (const line of linesOf(found, `${plain(capability)} at ${plain(place)}`)) terminal.print(line)
    return { code }
  },
})

/** A group, or where there is none of that path a repository. */
async function placeOf(api: ApiReader, given: string): Promise<string> {
  try {
    return await groupOf(api, given)
  } catch (error) {
    if (!(error instanceof NothingNamed) || isUid(given) || !given.includes('/')) throw error
    return findImage(api, imageNameOf(given, registryOf(api.session)).path)
  }
}

function linesOf({ allowed, bindings = [], sufficientRoles = [], grantors = [] }: Explanation, what: string): string[] {
  const rows = bindings.map(({ groupUid, groupName, roleName, effect }) => {
    return [plain(roleName || '(not shown)'), plain(groupName || groupUid), effects[effect] ?? plain(effect)]
  })
  const lines = [allowed ? `yes: ${what}` : `no: ${what}`]
  if (rows.length > 0) lines.push(...table([['ROLE', 'ON', ''], ...rows]))
  else lines.push('it has no role there or above')
  if (sufficientRoles.length > 0)
    lines.push(`enough would be: ${sufficientRoles.map(({ name }) => plain(name)).join(', ')}`)
  if (grantors.length > 0) {
    lines.push(`who could give it: ${grantors.map(({ identityUid, name }) => plain(name || identityUid)).join(', ')}`)
  }
  return lines
}
