// Bucket and options of the setting `--blobs`: s3://bucket/prefix?endpoint=…&region=…

export type Bucket = {
  name: string
  /** Prefix of all keys. Empty, or with a slash at its end. */
  prefix: string
  region: string
  /** Scheme, host and port for requests of this server. */
  origin: string
  /** Scheme, host and port of signed URLs for clients. */
  publicOrigin: string
  /** Part of the URL path before the key. Empty if the host name contains the bucket. */
  path: string
  /** Milliseconds without any received or sent data after which a request fails. */
  timeoutMs: number
}

/** True if the setting names a bucket and not a folder. */
export const isBucket = (setting: string): boolean => /^s3:/i.test(setting)

const parameters = ['endpoint', 'public', 'region', 'style', 'timeout']

/** First parts of the keys of contents. */
const ownFolders = ['c', 'sha256', 'sha512', 'uploads']

/** Parses the setting. Throws an error whose message follows the name of the setting. */
export function parseBucket(text: string): Bucket {
  const url = URL.parse(text)
  if (url?.protocol !== 's3:' || url.username !== '' || url.password !== '' || url.port !== '' || url.hash !== '') {
    throw new Error('must be s3://bucket/prefix without a port and credentials; credentials come from the environment')
  }
  const { searchParams: given } = url
  for (const name of given.keys()) {
    if (!parameters.includes(name))
      throw new Error(`has the unknown parameter ${name}; known are ${parameters.join(', ')}`)
  }
  const name = url.hostname
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(name)) throw new Error('must name a bucket, as s3://bucket')
  const prefix = url.pathname.replace(/^\/|\/$/g, '')
  if (!/^(?:[\w.-]+(?:\/[\w.-]+)*)?$/.test(prefix) || prefix.length > 512) {
    throw new Error('must have a prefix of letters, digits, dots, dashes and underscores, with slashes')
  }
  if (prefix.split('/').some((part) => ownFolders.includes(part))) {
    throw new Error(`must have a prefix without ${ownFolders.join(', ')}, which are reserved for blobs`)
  }
  const region = given.get('region') ?? 'us-east-1'
  if (!/^[a-z0-9-]{1,64}$/.test(region)) throw new Error('must have a region such as eu-central-1')
  const timeout = Number(given.get('timeout') ?? 30)
  if (!(timeout >= 0.1 && timeout <= 600)) throw new Error('must have a timeout of 0.1 to 600 seconds')
  const endpoint = given.get('endpoint')
  const style = given.get('style') ?? (endpoint === null ? 'host' : 'path')
  if (style !== 'host' && style !== 'path') throw new Error('must have the style path or host')
  const base = baseOf(endpoint ?? `https://s3.${region}.amazonaws.com`)
  const publicBase = given.get('public') === null ? base : baseOf(given.get('public')!)
  const originOf = ({ protocol, host }: URL) => `${protocol}//${style === 'host' ? `${name}.` : ''}${host}`
  return {
    name,
    prefix: prefix === '' ? '' : `${prefix}/`,
    region,
    origin: originOf(base),
    publicOrigin: originOf(publicBase),
    path: style === 'host' ? '' : `/${name}`,
    timeoutMs: timeout * 1000,
  }
}

function baseOf(text: string): URL {
  const base = URL.parse(text)
  if (
    !base ||
    !/^https?:$/.test(base.protocol) ||
    base.pathname !== '/' ||
    base.search !== '' ||
    base.username !== ''
  ) {
    throw new Error('must have an endpoint that is an http or https URL without a path')
  }
  return base
}

/** Name of the bucket for messages and logs. */
export function nameOf({ name, prefix }: Bucket): string {
  return `s3://${name}${prefix === '' ? '' : `/${prefix.slice(0, -1)}`}`
}
