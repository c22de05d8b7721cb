// Command that compares a token of an outside issuer with an identity, claim by claim.
import { parseClaims } from '#lib/json/claims.ts'
import { jsonText, table } from '#lib/terminal/plain-text.ts'
import { apiReader } from '../framework/api-pages.ts'
import { exitCodes, failure } from '../framework/cli-error.ts'
import { type Command, outputOption } from '../framework/command.ts'
import { findIdentity } from '../framework/names.ts'
import { apiOption } from '../framework/session.ts'
import { readTokenFile } from './outside-token.ts'

type Check = { claim: string; wanted: string; got: string; matches: boolean }
type Claims = Record<string, unknown>

export const identitiesCheck: Command = {
  details: `Exits with 0 if the token matches, and with 1 if not. The token is not sent to the server, and its signature is not checked:
a sign-in checks it. You need permission to see the identity. The command uses PINFOLD_TOKEN or your sign-in.`,
  arguments: [{ name: '<identity>', summary: 'Identity: name, GROUP/NAME or uid', former: '--identity <identity>' }],
  options: [
    { flags: '--token-file <file>', summary: 'File with the token; - for standard input', required: true },
    apiOption,
    outputOption,
  ],
  async run(terminal, { identity, tokenFile, output, api }) {
    const claims = readClaims((await readTokenFile(terminal, String(tokenFile))).token)
    const reader = await apiReader(terminal, { api })
    const uid = await findIdentity(reader, String(identity))
    const found = await reader.call('GET', `/iam/v2/identities/${uid}`)

    const checks = await matchChecks(found, claims, reader.session.api)
    const matches = checks.every((check) => check.matches)
    if (output === 'json') {
      terminal.print(jsonText({ identity: uid, matches, checks }, 2))
    } else {
      const rows = checks.map((one) => [one.matches ? 'ok' : 'no', one.claim, one.got || '(none)', one.wanted])
      for (const line of table([['', 'CLAIM', 'TOKEN HAS', 'IDENTITY REQUIRES'], ...rows])) terminal.print(line)
      terminal.print(matches ? 'the token matches; its signature was not checked' : 'the token does not match')
    }
    return matches ? exitCodes.ok : exitCodes.failed
  },
}

/** If a token cannot be read, the error contains no part of the token. */
function readClaims(token: string): Claims {
  const parts = token.split('.')
  try {
    if (parts.length !== 3) throw new SyntaxError('not three parts')
    const claims = parseClaims(Buffer.from(parts[1]!, 'base64url').toString())
    if (claims === null || typeof claims !== 'object' || Array.isArray(claims)) throw new SyntaxError('not an object')
    return claims as Claims
  } catch {
    throw failure('the token cannot be read: it is not a signed JSON Web Token')
  }
}

async function matchChecks(identity: Record<string, unknown>, claims: Claims, api: string): Promise<Check[]> {
  const { checkToken } = await import('#domains/iam/identities/token-checks.ts')
  const { host, hostname } = new URL(api)
  const checks = checkToken(identity, claims, [...new Set([api, host, hostname])], new Date())
  if (checks) return checks
  throw failure(
    'the token was not checked: this identity is not matched by the claims of a token; pinfold identities describe shows how it signs in',
  )
}
