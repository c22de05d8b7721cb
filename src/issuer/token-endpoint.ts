// The token endpoint: which grant a form asks for.
import type { Work } from '#app.ts'
import type { Issuing } from './exchange.ts'
import { tokenExchange } from './oauth-token.ts'
import { inOAuthWords, type OAuthAnswer, refused } from './oauth-words.ts'
import { authorizeDevice, codeGrant, deviceGrant, refreshGrant } from './people/client-grants.ts'

type Doing = Pick<Work, 'app' | 'cause' | 'log'>
type Grant = (work: Doing, issuing: Issuing, form: URLSearchParams) => Promise<object>

const deviceGrantType = 'urn:ietf:params:oauth:grant-type:device_code'

/** Every grant, by its name; the one of devices is left out where the settings turn it off. */
export function grantsOf(deviceSignIn: boolean): Record<string, Grant> {
  return {
    authorization_code: codeGrant,
    refresh_token: refreshGrant,
    ...(deviceSignIn && { [deviceGrantType]: deviceGrant }),
    'urn:ietf:params:oauth:grant-type:token-exchange': tokenExchange,
  }
}

/** All that may not be given more than once; the others are lists. */
const lists = ['audience', 'resource', 'cap']

/** Answers a form of the token endpoint. */
export async function answerTokenRequest(work: Doing, issuing: Issuing, form: URLSearchParams): Promise<OAuthAnswer> {
  const twice = repeated(form)
  if (twice !== undefined) return refused(400, 'invalid_request', `${twice} is given more than once`)
  const grants = grantsOf(work.app.config.deviceSignIn)
  const name = form.get('grant_type') ?? ''
  if (!Object.hasOwn(grants, name)) {
    return refused(400, 'unsupported_grant_type', `grant_type must be one of ${Object.keys(grants).join(', ')}`)
  }
  return inOAuthWords(grants[name]!(work, issuing, form))
}

/** Answers a form of the device authorization endpoint. */
export async function answerDeviceRequest(work: Doing, issuing: Issuing, form: URLSearchParams): Promise<OAuthAnswer> {
  const twice = repeated(form)
  if (twice !== undefined) return refused(400, 'invalid_request', `${twice} is given more than once`)
  return inOAuthWords(authorizeDevice(work, issuing, form))
}

/** The first member given twice. One pass: the form comes from anybody, and may have as many members as fit. */
function repeated(form: URLSearchParams): string | undefined {
  const seen = new Set<string>()
  for (const name of form.keys()) {
    if (lists.includes(name)) continue
    if (seen.has(name)) return name.slice(0, 100)
    seen.add(name)
  }
  return undefined
}
