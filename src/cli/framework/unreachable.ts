// Reasons why a server cannot be reached, with a text and a next step for each.
import { plain } from './plain-text.ts'

type Why = { says: string; next: string }

const address = 'whether --api or PINFOLD_API is where it does'
const nobody: Why = { says: 'nothing listens there', next: `look whether the server runs, and ${address}` }
const noHost: Why = {
  says: 'there is no host of that name',
  next: 'look at the name in --api or PINFOLD_API, or whether this machine asks the right name server',
}
const noAnswer: Why = {
  says: 'the name server gives no answer',
  next: 'try again, or look whether this machine has a network and a name server',
}
const noWay: Why = {
  says: 'no way leads there',
  next: 'look whether a firewall or a lost connection stands between, and at the address in --api or PINFOLD_API',
}
const closed: Why = {
  says: 'the connection was closed without an answer',
  next: 'look whether what listens there is the server, and whether it wants https',
}
const noTls: Why = {
  says: 'what listens there does not speak TLS',
  next: 'give --api or PINFOLD_API with http:// where that is meant',
}
const untrusted: Why = {
  says: 'its certificate is not one that this machine trusts',
  next: 'name the file of its authority by NODE_EXTRA_CA_CERTS',
}
const otherName: Why = {
  says: 'its certificate is for another name',
  next: 'give --api or PINFOLD_API with a name that the certificate has',
}
const ended: Why = { says: 'its certificate has ended', next: 'have whoever runs the server renew it' }

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

/** Reason for an error of a connection, with its code for a search; `next` may be empty. */
export function whyUnreachable(error: unknown): Why {
  // Node gives no code of its own to a host that refused on each of its addresses.
  const { code, message } = ((error as Error).cause ?? error) as NodeJS.ErrnoException
  const why = code === undefined ? undefined : reasons[code]
  if (why) return { says: `${why.says} (${code})`, next: why.next }
  return { says: plain(code ?? message), next: '' }
}
