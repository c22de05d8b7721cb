// Proxy through which commands reach a server, and reasons why a server cannot be reached.

import { plain } from '#lib/terminal/plain-text.ts'
import { CliError, exitCodes } from './cli-error.ts'

type Why = { says: string; next: string }

const nobody: Why = {
  says: 'no server listens there',
  next: 'check that the server runs, and that --api or PINFOLD_API has its address',
}
const noHost: Why = {
  says: 'the host name does not exist',
  next: 'check the host name in --api or PINFOLD_API, and the DNS settings of this machine',
}
const noAnswer: Why = {
  says: 'the DNS server does not answer',
  next: 'try again, or check the network and the DNS settings of this machine',
}
const noWay: Why = {
  says: 'the host does not answer',
  next: 'check the network and its firewalls, and the address in --api or PINFOLD_API',
}
const closed: Why = {
  says: 'the connection was closed without a response',
  next: 'check that a Pinfold server listens there, and whether the URL must begin with https://',
}
const noTls: Why = {
  says: 'the server there does not use TLS',
  next: 'if TLS is not wanted, set --api or PINFOLD_API to a URL with http://',
}
const untrusted: Why = {
  says: 'this machine does not trust its certificate',
  next: 'set NODE_EXTRA_CA_CERTS to the file of its certificate authority',
}
const otherName: Why = {
  says: 'its certificate is for another host name',
  next: 'set --api or PINFOLD_API to a URL with a host name of the certificate',
}
const ended: Why = { says: 'its certificate has expired', next: 'ask the operator of the server to renew it' }

const noTunnel: Why = {
  says: 'the proxy of HTTPS_PROXY does not connect to it',
  next: 'check HTTPS_PROXY, or add the host to NO_PROXY',
}

/** The proxy may cause most errors, such as a refused connection. */
const proxyToo = '; check the proxy of HTTPS_PROXY too'

const reasons: Readonly<Record<string, Why>> = {
  ECONNREFUSED: nobody,
  ENOENT: nobody,
  ENOTFOUND: noHost,
  EAI_AGAIN: noAnswer,
  EAI_FAIL: noAnswer,
  ETIMEDOUT: noWay,
  EHOSTUNREACH: noWay,
  ENETUNREACH: noWay,
  EHOSTDOWN: noWay,
  ECONNRESET: closed,
  EPIPE: closed,
  ERR_PROXY_TUNNEL: noTunnel,
  UND_ERR_SOCKET: closed,
  EPROTO: noTls,
  ERR_SSL_WRONG_VERSION_NUMBER: noTls,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: noTls,
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  ERR_TLS_CERT_ALTNAME_INVALID: otherName,
  CERT_HAS_EXPIRED: ended,
}

/** Hosts of this machine. Requests to them never go through a proxy, which could read tokens that are sent without TLS. */
const own = 'localhost,127.0.0.1,::1'

/** True if requests of this process may go through a proxy. */
let isProxyUsed = false

/**
 * Lets the https requests of this process use the proxy of HTTPS_PROXY, except for the hosts of NO_PROXY. The lower case names
 * have priority, as in curl. Throws CliError if the proxy is not an http or https URL.
 */
export function useProxy(env: Readonly<NodeJS.ProcessEnv>): void {
  const given = env.https_proxy || env.HTTPS_PROXY
  if (!given) return
  const url = given.includes('://') ? given : `http://${given}`
  if (!/^https?:\/\/./i.test(url) || !URL.canParse(url)) {
    const form = 'it must be the URL of a proxy, such as http://proxy.example.com:3128'
    // The value may contain a password, so the message does not repeat it.
    throw new CliError(exitCodes.config, `HTTPS_PROXY is not valid: ${form}`)
  }
  const direct = [env.no_proxy || env.NO_PROXY, own].filter(Boolean).join(',')
  process.getBuiltinModule('node:http').setGlobalProxyFromEnv({ https_proxy: url, no_proxy: direct })
  isProxyUsed = true
}

/** Reason for a connection error. The text has the error code, which users can search for; `next` may be empty. */
export function unreachableReason(error: unknown): Why {
  // If a host refuses on all of its addresses, the code is in the cause of the error.
  const { code, message } = ((error as Error).cause ?? error) as NodeJS.ErrnoException
  const why = code === undefined ? undefined : reasons[code]
  if (why) return { says: `${why.says} (${code})`, next: why.next + (isProxyUsed ? proxyToo : '') }
  return { says: plain(code ?? message), next: '' }
}
