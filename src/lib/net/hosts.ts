// Host names that clients may use for this server. Responses contain URLs, such as that of the token endpoint. Such a URL has the
// host of the request only if the host is one of these names. With any other `Host`, clients could be made to send credentials to
// an attacker.
import { subdomainOf } from './subdomain.ts'

/** Headers that name the host of a request. */
export type HostHeaders = {
  /** The `Host` header, or the authority of HTTP/2. */
  host: string | undefined
  /** `X-Forwarded-Host` and `X-Forwarded-Proto`. Pass them only if the connection comes from a trusted proxy. */
  forwardedHost: string | undefined
  forwardedProto: string | undefined
}

export type Called = {
  /** URL, without a path, that the client has used for this server. */
  origin: string
  /** True if the client has used the host of the server's URL. */
  isUrl: boolean
  /**
   * Part of the host before one of the server's names. Empty if the host is such a name, and `undefined` if the part is not
   * valid.
   */
  subdomain: string | undefined
}

/** `find` returns `undefined` for a host that is not a name of this server. */
export type Hosts = { find(headers: HostHeaders): Called | undefined }

type Name = { host: string; scheme: string; isUrl: boolean }

const loopbackNames = ['localhost', '127.0.0.1', '[::1]']
const hostPattern = /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/
const defaultPorts: Record<string, string> = { http: '80', https: '443' }

/** Clients may include the default port of their scheme. */
function withoutDefaultPort(host: string, scheme: string): string {
  return host.endsWith(`:${defaultPorts[scheme]}`) ? host.slice(0, host.lastIndexOf(':')) : host
}

/** True if a host, without a port, can only be this machine (RFC 6761, 6.3). */
export function isLoopback(hostname: string): boolean {
  return /^(?:localhost|.+\.localhost|127(?:\.\d+){3}|\[?::1\]?)$/.test(hostname)
}

/** Scheme and host of an origin or host; `undefined` if the text is neither. */
export function readHost(text: string): { scheme: string | undefined; host: string } | undefined {
  const [, scheme, host = ''] = /^(?:(https?):\/\/)?(.*)$/.exec(text.toLowerCase()) ?? []
  return hostPattern.test(host) && URL.canParse(`http://${host}`) ? { scheme, host } : undefined
}

/**
 * Creates the look-up of the server's names: the host of `url`, all loopback names if `url` has one, and `names`. A name without
 * a scheme takes the scheme of `url`. Sub-domains of the URL's host and of `names` are accepted too.
 */
export function createHosts(url: string, names: readonly string[]): Hosts {
  const { host, hostname, port, protocol } = new URL(url)
  const scheme = protocol.slice(0, -1)
  const ours: Name = { host, scheme, isUrl: true }
  const further = names.flatMap((name): Name[] => {
    const read = readHost(name)
    if (!read) return []
    const of = read.scheme ?? scheme
    return [{ host: withoutDefaultPort(read.host, of), scheme: of, isUrl: false }]
  })
  const local = isLoopback(hostname) ? loopbackNames.map((name) => (port === '' ? name : `${name}:${port}`)) : []

  const known = new Map<string, Name>()
  for (const name of [...local.map((one) => ({ host: one, scheme, isUrl: false })), ...further, ours]) {
    known.set(name.host, name)
    if (!/:\d+$/.test(name.host)) known.set(`${name.host}:${defaultPorts[name.scheme]}`, name)
  }
  // The longest name comes first, since one name may be a sub-domain of another.
  const parents = [ours, ...further].sort((a, b) => b.host.length - a.host.length)

  return {
    find({ host: hostHeader, forwardedHost, forwardedProto }) {
      const called = (lastEntry(forwardedHost) ?? hostHeader ?? '').toLowerCase()
      const secure = lastEntry(forwardedProto)?.toLowerCase() === 'https'
      const originOf = (name: string, of: string) => `${secure ? 'https' : of}://${name}`
      const name = known.get(called)
      if (name) return { origin: originOf(name.host, name.scheme), isUrl: name.isUrl, subdomain: '' }
      for (const parent of parents) {
        const below = withoutDefaultPort(called, secure ? 'https' : parent.scheme)
        if (!below.endsWith(`.${parent.host}`)) continue
        const subdomain = subdomainOf(below, parent.host)
        return { origin: originOf(below, parent.scheme), isUrl: false, subdomain }
      }
      if (forwardedHost === undefined || !hostPattern.test(called)) return undefined
      return { origin: originOf(called, scheme), isUrl: false, subdomain: '' }
    },
  }
}

/** Last entry of a list. The trusted proxy has added it, while a client may have sent the others. */
function lastEntry(header: string | undefined): string | undefined {
  return header?.split(',').at(-1)?.trim()
}

/** True if both hosts are equal, or `host` is a sub-domain of `other`. Neither may have a port. */
export function isAtOrBelow(host: string, other: string): boolean {
  const [one, two] = [host.toLowerCase(), other.toLowerCase()]
  return one === two || one.endsWith(`.${two}`)
}
