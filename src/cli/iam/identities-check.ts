// Command that explains claim by claim why an outside token would become an identity of the server, or not.
import { parseClaims } from '#lib/json/claims.ts'
import { apiReader } from '../framework/api-pages.ts'
import { exitCodes, failure } from '../framework/cli-error.ts'
import { type Command, outputOption } from '../framework/command.ts'
import { findIdentity } from '../framework/names.ts'
import { jsonText, table } from '../framework/plain-text.ts'
import { apiOption } from '../framework/session.ts'
import { readTokenFile } from './outside-token.ts'

type Check = { claim: string; wanted: string; got: string; matches: boolean }
type Claims = Record<string, unknown>

export const identitiesCheck: Command = {
  details: `Ends with 0 when it would and with 1 when not. Nothing of the token is sent anywhere, and its signature is not
checked: only an exchange does that. The caller, who must be allowed to see the identity, is PINFOLD_TOKEN or whoever has
signed in with pinfold auth login.`,
  options: [
    { flags: '--token-file <file>', summary: 'The file with the token; - for standard input', required: true },
    {
      flags: '--identity <identity>',
      summary: 'The identity that it is for: by name, GROUP/NAME or uid',
      required: true,
    },
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
      for (const line of table([['', 'CLAIM', 'TOKEN HAS', 'IDENTITY WANTS'], ...rows])) terminal.print(line)
      terminal.print(matches ? 'the token matches; its signature was not checked' : 'the token does not match')
    }
    return matches ? exitCodes.ok : exitCodes.failed
  },
}

/** Shows no part of a token that could not be read. */
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
  throw failure('the identity is matched by something else than the claims of a token')
}
