import type { AccessExplanationJson } from '#gen/pinfold/control/iam/v1/access_pb.ts'
import { plain, table } from '#lib/terminal/plain-text.ts'
import { apiCommand } from '../framework/api-pages.ts'
import { exitCodes } from '../framework/cli-error.ts'
import { type Command, outputOption } from '../framework/command.ts'
import { findIdentity } from '../framework/names.ts'
import { scopeNamed } from '../registry/rules.ts'

const effects: Record<string, string> = {
  EFFECT_GRANTS: 'grants the capability',
  EFFECT_ROLE_LACKS_IT: 'the role does not have the capability',
  EFFECT_NOT_ACCEPTED: 'no effect until the user accepts it with pinfold invitations accept',
  EFFECT_ABOVE_HOME: 'no effect: the identity belongs to a folder below this scope',
}

export const explain = apiCommand({
  details: 'Exits with 0 if the identity has the capability, and with 1 if not.',
  arguments: [
    { name: '<member>', summary: 'Identity: name, ORG/NAME or uid' },
    { name: '<capability>', summary: 'Capability, such as repo.list or manifest.list' },
  ],
  options: [
    {
      flags: '--in <scope>',
      summary: 'Organization, folder or repository: ORG, ORG/FOLDER, ORG/NAME or a uid',
      required: true,
    },
    outputOption,
  ],
  async run(api, options, terminal) {
    const [scopeName, capability] = [String(options.in), String(options.capability)]
    const uid = await scopeNamed(api, scopeName)
    const query = new URLSearchParams({ identityUid: await findIdentity(api, String(options.member)), capability })
    const found = (await api.call('GET', `/control/v1/access/${uid}:explain?${query}`)) as AccessExplanationJson
    const allowed = found.allowed === true
    const code = allowed ? exitCodes.ok : exitCodes.failed
    if (options.output === 'json') return { json: found, code }
    for (const line of linesOf(found, `${plain(capability)} in ${plain(scopeName)}`)) terminal.print(line)
    return { code }
  },
})

/** Former command, whose first argument was the scope. */
export const formerExplain: Command = {
  ...explain,
  arguments: [{ name: '<in>', summary: 'Organization, folder or repository' }, ...explain.arguments!],
  options: explain.options.filter(({ flags }) => flags !== '--in <scope>'),
}

function linesOf(
  { allowed, bindings = [], groupRoles = [], sufficientRoles = [], grantors = [] }: AccessExplanationJson,
  what: string,
): string[] {
  const rows = bindings.map(({ groupUid, groupName, roleName, effect = '' }) => {
    return [roleName || '(not shown)', groupName || groupUid, effects[effect] ?? effect]
  })
  for (const { externalGroupId = '', provisioned, groupUid, groupName, roleName, effect = '' } of groupRoles) {
    const group = `external group ${externalGroupId || '(not shown)'}, ${provisioned ? 'provisioned over SCIM' : 'sent at the sign-in'}`
    rows.push([roleName || '(not shown)', groupName || groupUid, `${effects[effect] ?? effect} (${group})`])
  }
  const lines = [allowed ? `yes: ${what}` : `no: ${what}`]
  if (rows.length > 0) lines.push(...table([['ROLE', 'SCOPE', 'EFFECT'], ...rows]))
  else lines.push('the identity has no role in this scope or above it')
  if (sufficientRoles.length > 0)
    lines.push(`sufficient roles: ${sufficientRoles.map(({ name = '' }) => plain(name)).join(', ')}`)
  if (grantors.length > 0) {
    lines.push(
      `members who can grant one: ${grantors.map(({ identityUid = '', name }) => plain(name || identityUid)).join(', ')}`,
    )
  }
  return lines
}
