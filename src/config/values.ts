// Parsers for values of settings: each takes a text and the setting's name, and throws a ConfigError.

import { isIP } from 'node:net'
import { parseBucket } from '#blobs/s3/bucket.ts'
import { looksLikeView, readView } from '#domains/policy/views/views.model.ts'
import { parseMasterKey } from '#lib/crypto/master-key.ts'
import { type SigningAlgorithm, signingAlgorithms } from '#lib/crypto/signing-algorithms.ts'
import { readHost } from '#lib/net/hosts.ts'
import { componentPattern, maxPathLength } from '#lib/oci-names.ts'
import { type NoteKey, parseVkey } from '#lib/tlog/notes.ts'
import type { Witness } from '#lib/tlog/witnesses.ts'
import { ConfigError } from './basics.ts'

export const databaseUrl = (value: string, name: string): string => {
  if (value === '') return ''
  if (hasSeveralHosts(value)) {
    throw new ConfigError(
      `${name} must have one host and no target_session_attrs; for several database servers, use the address of a proxy or a virtual address that leads to the primary`,
    )
  }
  const url = URL.parse(value)
  if (!url || !/^postgres(?:ql)?:$/.test(url.protocol)) {
    throw new ConfigError(`${name} must be a postgres:// URL, such as postgres://user:password@host:5432/pinfold`)
  }
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(url.searchParams.get('schema') ?? 'public')) {
    throw new ConfigError(`${name} must have a schema of at most 63 lower-case letters, digits and underscores`)
  }
  return value
}
/** True if the URL needs a client that tries several hosts in order, as libpq does. */
function hasSeveralHosts(value: string): boolean {
  const [, authority = '', rest = ''] = /^postgres(?:ql)?:\/\/([^/?#]*)(.*)/i.exec(value) ?? []
  const hosts = authority.slice(authority.lastIndexOf('@') + 1)
  return hosts.includes(',') || /[?&](?:target_session_attrs=(?!any\b)|host=[^&]*(?:,|%2C))/i.test(rest)
}
export const directDatabaseUrl = (value: string, name: string): string => {
  const url = databaseUrl(value, name)
  if (url !== '' && new URL(url).searchParams.get('pooled') === 'true') {
    throw new ConfigError(`${name} must lead to the database itself, so remove pooled=true from it`)
  }
  return url
}
export const urlWithoutUser = (value: string, name: string): string => {
  const url = URL.parse(value)
  if (value === '' || (url && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''))
    return value
  throw new ConfigError(`${name} must be an http or https URL without a user and password`)
}
export const masterKey = (value: string, name: string): string => {
  try {
    if (value !== '') parseMasterKey(value)
    return value
  } catch {
    throw new ConfigError(`${name} must be 32 bytes, as base64 or hex; openssl rand -base64 32 makes such a key`)
  }
}
/** Name of an organization. It is the first part of an image's name, so it must be valid in an image reference. */
export const organization = (value: string, name: string): string => {
  if (!componentPattern.test(value) || value.length > maxPathLength) {
    throw new ConfigError(
      `${name} must consist of lower-case letters and digits, joined by dots, dashes or underscores, such as public`,
    )
  }
  return value
}
export const domain = (value: string, name: string): string => {
  if (!/^[a-z0-9][a-z0-9.-]*$/.test(value))
    throw new ConfigError(`${name} must be a domain name, such as registry.example.com`)
  return value
}
/** Name of another product that replaces `pinfold` in package names (compatibility profile); may be empty. */
export const vendorToken = (value: string, name: string): string => {
  if (reservedTokens.includes(value)) throw new ConfigError(`${name} must not be one of ${reservedTokens.join(', ')}`)
  if (value === '' || /^[a-z][a-z0-9]{0,62}$/.test(value)) return value
  throw new ConfigError(`${name} must be up to 63 lower-case letters and digits that begin with a letter`)
}
/** Names that already have a meaning at this place of a package name. */
const reservedTokens = ['svc', 'oci', 'google', 'grpc', 'pinfold']
export const optionalDomain = (value: string, name: string): string => (value === '' ? '' : domain(value, name))

/** Location of blobs: a folder as a path or a URL, a bucket, or empty for the folder in the data folder. */
export const blobStore = (value: string, name: string): string => {
  if (/^s3:/i.test(value)) {
    try {
      parseBucket(value)
      return value
    } catch (error) {
      throw new ConfigError(`${name} ${(error as Error).message}`)
    }
  }
  if (!/^[a-z][a-z0-9+.-]+:/i.test(value)) return value
  const url = URL.parse(value)
  if (url?.protocol !== 'file:' || url.host !== '' || url.search !== '' || url.hash !== '') {
    throw new ConfigError(`${name} must be a folder, as a path or a file:// URL, or a bucket, as an s3:// URL`)
  }
  return value
}

/** Host names, each with or without a scheme. */
export const hosts = (value: string, name: string): readonly string[] => {
  const listed = value.split(',').flatMap((one) => (one.trim() === '' ? [] : [one.trim()]))
  if (listed.every((one) => readHost(one) !== undefined)) return listed
  throw new ConfigError(
    `${name} must be host names, optionally with a port and a scheme, separated by commas, such as registry.internal:8443`,
  )
}

const mostLogKeys = 1000

/** Public keys of transparency logs, in the form that witness policies use. */
export const logKeys = (value: string, name: string): readonly NoteKey[] => {
  const words = value.split(/[\s,]+/).filter((one) => one !== '')
  const keys = words.map(parseVkey)
  if (words.length <= mostLogKeys && keys.every((key) => key?.kind === 'log')) return keys as NoteKey[]
  throw new ConfigError(
    `${name} must be at most ${mostLogKeys} Ed25519 keys of logs in the form NAME+ID+KEY, separated by commas`,
  )
}

const mostWitnesses = 16

/** Witnesses of transparency logs, each as its key and its URL with a space between them. */
export const witnesses = (value: string, name: string): readonly Witness[] => {
  const listed = value.split(',').filter((one) => one.trim() !== '')
  const read = listed.map((one) => {
    const [vkey = '', url = '', ...more] = one.trim().split(/\s+/)
    const [key, parsedUrl] = [parseVkey(vkey), URL.parse(url)]
    const isGood = key?.kind === 'witness' && more.length === 0 && parsedUrl && /^https?:$/.test(parsedUrl.protocol)
    return isGood ? { key, url: url.replace(/\/+$/, '') } : undefined
  })
  const names = new Set(read.map((one) => one?.key.publicKey.toString('hex')))
  if (read.every((one) => one !== undefined) && names.size === read.length && read.length <= mostWitnesses) return read
  throw new ConfigError(
    `${name} must be at most ${mostWitnesses} different witnesses, separated by commas, each as an Ed25519 key in the form NAME+ID+KEY, a space and a URL`,
  )
}

const mostHostPaths = 100

/** Path prefixes of repositories, by host name of the server. */
export const hostPaths = (value: string, name: string): ReadonlyMap<string, string> => {
  const wrong = new ConfigError(
    `${name} must be a JSON object of at most ${mostHostPaths} host names, such as {"slow.example":"min-7d/acme/hub"}`,
  )
  if (value === '') return new Map()
  let read: unknown
  try {
    read = JSON.parse(value)
  } catch {
    throw wrong
  }
  if (typeof read !== 'object' || read === null || Array.isArray(read)) throw wrong
  const paths = new Map<string, string>()
  for (const [host, path] of Object.entries(read)) {
    const known = readHost(host)
    if (!known || known.scheme !== undefined || typeof path !== 'string' || !isHostPath(path, name)) throw wrong
    // Clients send the host without the default port, so the port is removed here too.
    paths.set(known.host.replace(/:(?:80|443)$/, ''), path)
  }
  if (paths.size > mostHostPaths) throw wrong
  return paths
}

function isHostPath(path: string, name: string): boolean {
  const parts = path.split('/')
  if (path.length > maxPathLength || !parts.every((part) => componentPattern.test(part))) return false
  try {
    if (looksLikeView(parts[0]!)) readView(parts[0]!)
  } catch (error) {
    throw new ConfigError(`${name}: ${(error as Error).message}`)
  }
  return true
}

/** Signing algorithms: at least one, and each at most once. */
export const algorithms = (value: string, name: string): readonly SigningAlgorithm[] => {
  const listed = value.split(',').map((one) => one.trim())
  const found = signingAlgorithms.filter((one) => listed.includes(one))
  if (found.length === listed.length) return found.sort((a, b) => listed.indexOf(a) - listed.indexOf(b))
  throw new ConfigError(
    `${name} must be one or more of ${signingAlgorithms.join(', ')}, each at most once, separated by commas`,
  )
}

export const networks = (value: string, name: string): readonly string[] => {
  const listed = commaList(value)
  if (listed.every(isNetwork)) return listed
  throw new ConfigError(`${name} must be addresses or CIDR ranges, separated by commas, such as 10.0.0.0/8`)
}
/** `off`, `on`, or addresses and ranges of clients. An entry with a `!` excludes its clients. */
export const clients = (value: string, name: string): readonly string[] => {
  const listed = commaList(value)
  const plain = listed.map((one) => one.replace(/^!/, ''))
  const isAll = (one: string) => one === 'on' || one === 'off'
  const fits = listed.every((one, at) => isNetwork(plain[at]!) || isAll(one))
  if (fits && (listed.length === 1 || !listed.includes('off'))) return listed
  throw new ConfigError(
    `${name} must be on, off, or addresses and CIDR ranges, separated by commas, with ! before those to exclude`,
  )
}
/** Hosts that outgoing requests may connect to: addresses, address ranges or names. */
export const destinations = (value: string, name: string): readonly string[] => {
  const listed = commaList(value)
  const isHost = (one: string) => /^(?!.*\.\d+$)[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(one) && !/^\d+$/.test(one)
  if (listed.every((one) => isNetwork(one) || isHost(one))) return listed
  throw new ConfigError(
    `${name} must be host names, addresses or CIDR ranges, separated by commas, such as idp.corp.internal,10.2.0.0/16`,
  )
}
function commaList(value: string): string[] {
  return value.split(',').flatMap((one) => (one.trim() === '' ? [] : [one.trim()]))
}
function isNetwork(text: string): boolean {
  const [address = '', bits = '0', more] = text.split('/')
  const most = isIP(address) === 6 ? 128 : 32
  return isIP(address) !== 0 && more === undefined && /^\d{1,3}$/.test(bits) && Number(bits) <= most
}

/** JSON array of objects that have exactly these members. All values must be non-empty texts. */
export const records =
  <K extends string>(...members: K[]) =>
  (value: string, name: string): readonly Record<K, string>[] => {
    const isRecord = (one: unknown): boolean => {
      if (one === null || typeof one !== 'object') return false
      const texts = Object.values(one).every((text) => typeof text === 'string' && text !== '')
      return texts && Object.keys(one).sort().join() === [...members].sort().join()
    }
    try {
      const parsed: unknown = value === '' ? [] : JSON.parse(value)
      if (Array.isArray(parsed) && parsed.every(isRecord)) return parsed as Record<K, string>[]
    } catch {
      // The code below throws the error.
    }
    throw new ConfigError(`${name} must be a JSON array of objects with the members ${members.join(', ')}`)
  }

/** Identity provider whose tokens identify users. If it has a label, the sign-in page offers it. */
export type PeopleIssuer = {
  issuer: string
  /** Client id that must be the audience of the provider's tokens. */
  audience: string
  label?: string
  /** Name of the provider on the sign-in page. Default: made from the label. */
  name?: string
  /** File with the client secret. Omitted for a public client. */
  secretFile?: string
  /** OAuth scopes in addition to `openid`, separated by spaces. */
  scopes?: string
}

const peopleMembers = ['issuer', 'audience', 'label', 'name', 'secretFile', 'scopes']

/** Identity providers of the settings, whose tokens identify users. */
export const peopleProviders = (value: string, name: string): readonly PeopleIssuer[] => {
  const isProvider = (one: unknown): boolean => {
    if (one === null || typeof one !== 'object') return false
    const { issuer, audience } = one as Record<string, unknown>
    const texts = Object.values(one).every((text) => typeof text === 'string' && text !== '')
    const known = Object.keys(one).every((member) => peopleMembers.includes(member))
    return texts && known && issuer !== undefined && audience !== undefined
  }
  const parsed = parsedArray(value)
  if (!parsed?.every(isProvider)) {
    throw new ConfigError(
      `${name} must be a JSON array of objects with issuer and audience, and optionally ${peopleMembers.slice(2).join(', ')}`,
    )
  }
  const providers = (parsed as PeopleIssuer[]).map((one) => {
    const slug = one.label?.toLowerCase().replace(/[^a-z0-9]+/g, '-')
    return slug === undefined ? one : { ...one, name: one.name ?? slug.replace(/^-|-$/g, '') }
  })
  const names = providers.flatMap((one) => one.name ?? [])
  if (!names.every((one) => /^[a-z0-9][a-z0-9-]{0,38}$/.test(one)) || new Set(names).size < names.length) {
    throw new ConfigError(
      `${name} must have a different name for each provider, of at most 39 lower-case letters, digits and hyphens`,
    )
  }
  return providers
}

function parsedArray(value: string): unknown[] | undefined {
  try {
    const parsed: unknown = value === '' ? [] : JSON.parse(value)
    return Array.isArray(parsed) ? parsed : undefined
  } catch {
    return undefined
  }
}

/** Documents of the terms of service. Their ids must differ, since an acceptance is stored with the id of its document. */
export const documents = (value: string, name: string): readonly Record<'id' | 'label' | 'url', string>[] => {
  const listed = records('id', 'label', 'url')(value, name)
  if (new Set(listed.map(({ id }) => id)).size === listed.length) return listed
  throw new ConfigError(`${name} must be documents with different values of id`)
}
/** Full names of gRPC methods, separated by commas. */
export const methodNames = (value: string, name: string): readonly string[] => {
  const listed = value.split(',').flatMap((one) => (one.trim() === '' ? [] : [one.trim()]))
  if (listed.every((one) => /^[\w.]+\/\w+$/.test(one))) return listed
  throw new ConfigError(
    `${name} must be full names of methods, separated by commas, such as pinfold.platform.registry.v2.ReposService/CreateRepo`,
  )
}
/** Names of annotations and labels, separated by commas. */
export const annotationNames = (value: string, name: string): readonly string[] => {
  const listed = commaList(value)
  if (listed.every((one) => /^[\w./-]{1,128}$/.test(one))) return listed
  throw new ConfigError(
    `${name} must be names of annotations, separated by commas, such as org.opencontainers.image.title`,
  )
}
/** OSV ecosystems of Linux distributions, separated by commas. Without a release, a name covers all releases. */
export const osvEcosystems = (value: string, name: string): readonly string[] => {
  const listed = commaList(value)
  if (listed.every((one) => /^[A-Z][A-Za-z0-9 ]{0,63}(:[\w.:-]{1,64})?$/.test(one))) return listed
  throw new ConfigError(`${name} must be OSV names of ecosystems, separated by commas, such as Wolfi or Alpine:v3.19`)
}
