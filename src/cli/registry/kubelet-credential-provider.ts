// Protocol of the kubelet's credential providers. The request is JSON on standard input, and the answer is JSON on standard
// output.
import { subdomainOf } from '#lib/net/subdomain.ts'
import { jsonText, plain } from '#lib/terminal/plain-text.ts'
import { isUid } from '#lib/uid.ts'
import { CliError, exitCodes, usageError } from '../framework/cli-error.ts'
import type { Command, Options, Terminal } from '../framework/command.ts'
import {
  apiOption,
  claimsOf,
  exchange,
  outsideToken,
  registryOf,
  type Session,
  sessionOf,
} from '../framework/session.ts'
import { type OutsideToken, readTokenFile } from '../iam/outside-token.ts'

/** The kubelet expects an answer in the version of its request. All versions have the same members. */
const versions = ['v1', 'v1beta1', 'v1alpha1'].map((version) => `credentialprovider.kubelet.k8s.io/${version}`)
/** Annotation of a service account that names the identity for pulls. */
const annotation = 'pinfold.dev/identity'
/** Maximum size of the kubelet's request. A token and annotations are far smaller. */
const maxInput = 512 * 1024
/** Time before its expiry at which the kubelet drops a cached credential. */
const earlySeconds = 5 * 60

type PluginRequest = { apiVersion: string; image: string; token: string; identity: string }

export const kubeletCredentialProvider: Command = {
  details: `The kubelet calls this command. It reads a CredentialProviderRequest from standard input, and prints a
CredentialProviderResponse with an access token for the registry.
If the request contains the token of the pod's service account, that token is exchanged. Otherwise the token of the node is
exchanged, from the file of --identity-token. The identity is that of the annotation ${annotation} of the service account, or
else that of --identity.`,
  options: [
    apiOption,
    {
      flags: '--identity <uid>',
      summary: 'Identity to use if the service account has no annotation (PINFOLD_IDENTITY)',
    },
    {
      flags: '--identity-token <file>',
      summary: 'File with the token of the node, used if the request has no token of a service account',
    },
  ],
  async run(terminal, options) {
    const asked = readRequest(await terminal.input())
    const session = sessionOf(terminal, options)
    terminal.print(jsonText(await answer(terminal, options, session, asked)))
    return exitCodes.ok
  },
}

async function answer(terminal: Terminal, options: Options, session: Session, asked: PluginRequest): Promise<object> {
  const { apiVersion, image } = asked
  const head = { kind: 'CredentialProviderResponse', apiVersion, cacheKeyType: 'Registry' }
  const registry = registryOf(session)
  const host = image.slice(0, image.indexOf('/'))
  // Throws if the image is on another registry, since that registry must not get the token.
  if (host !== registry && !subdomainOf(host, registry)) return { ...head, cacheDuration: '0s', auth: null }
  const token = await exchange(identityOf(session, asked), await shown(terminal, options, session, asked), {
    audiences: [registry],
  })
  const left = Math.floor((claimsOf(token)!.expiry.getTime() - Date.now()) / 1000)
  const cacheDuration = `${Math.max(0, left - earlySeconds)}s`
  return { ...head, cacheDuration, auth: { [host]: { username: '_token', password: token } } }
}

function identityOf(
  { api, identity }: Session,
  { identity: annotated }: PluginRequest,
): Pick<Session, 'api' | 'identity'> {
  const uid = annotated || identity
  if (isUid(uid)) return { api, identity: uid }
  const why = uid === '' ? 'no identity is configured' : `${uid} is not the uid of an identity`
  const next = `set the annotation ${annotation} of the service account to the uid of an identity, or give --identity`
  throw new CliError(exitCodes.config, plain(`${why}; ${next}`))
}

async function shown(
  terminal: Terminal,
  options: Options,
  session: Session,
  { token }: PluginRequest,
): Promise<OutsideToken> {
  if (token !== '') return { token, from: 'the kubelet' }
  const file = options.identityToken
  return typeof file === 'string' ? readTokenFile(terminal, file) : outsideToken(terminal, session)
}

function readRequest(text: string): PluginRequest {
  if (text.length > maxInput) throw refused(`is longer than ${maxInput} bytes`)
  const request = parsed(text)
  const { apiVersion, kind, image, serviceAccountToken = '', serviceAccountAnnotations } = request
  if (kind !== 'CredentialProviderRequest') throw refused('is not a CredentialProviderRequest')
  if (typeof apiVersion !== 'string' || !versions.includes(apiVersion)) {
    throw refused(`has an unknown apiVersion; known are ${versions.join(', ')}`)
  }
  if (typeof image !== 'string' || !/^[^/\s]+\/\S+$/.test(image))
    throw refused('has an image without a registry, or no image')
  if (typeof serviceAccountToken !== 'string' || !/^[\x21-\x7e]*$/.test(serviceAccountToken)) {
    throw refused('has an invalid serviceAccountToken')
  }
  const annotations = (serviceAccountAnnotations ?? {}) as Record<string, unknown>
  return { apiVersion, image, token: serviceAccountToken, identity: String(annotations[annotation] ?? '') }
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (value !== null && typeof value === 'object') return value as Record<string, unknown>
  } catch {
    // The code below throws the error.
  }
  throw refused('is not a JSON object')
}

/** The error does not show the request, which may contain a token. */
function refused(what: string): CliError {
  return usageError(`the request of the kubelet on standard input ${what}`)
}
