// Upstreams with randomly chosen attacks. Canary servers detect connections to forbidden addresses.
import { randomBytes } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import type { Json } from './pinfold.ts'
import { oneOf, type Random } from './random.ts'
import { digestOf, imageOf, indexOf, types } from './registry.ts'
import { answering, type Fault, type TestUpstream } from './upstream.ts'

/** A random number from 1 on. Each order of magnitude is equally likely. */
const sizeOf = (random: Random, most: number): number => 1 + random.below(Math.ceil(most ** (random.below(100) / 99)))

/** Names that resolve to forbidden addresses. One of the names has an allowed address too. */
export const innerNames: ReadonlyMap<string, readonly string[]> = new Map([
  ['inner.example', ['127.0.0.2']],
  ['metadata.example', ['169.254.169.254']],
  ['both.example', ['127.0.0.1', '127.0.0.3']],
  ['lan.example', ['10.0.0.5', '192.168.1.1']],
])

/** Canary servers on one port, at addresses of this machine that no upstream may lead to. */
export async function startCanaries() {
  let connections = 0
  const servers: ReturnType<typeof createServer>[] = []
  let port = 0
  for (const host of ['127.0.0.2', '127.0.0.3', '127.1.2.3', '::1']) {
    const server = createServer((_req, res) => res.end('{"token":"good"}'))
    server.on('connection', () => connections++)
    const isUp = await new Promise<boolean>((resolve) => {
      server.once('listening', () => resolve(true)).once('error', () => resolve(false))
      server.listen(port, host)
    })
    // Some machines have no IPv6.
    if (!isUp && host !== '::1') throw new Error(`nobody can listen at ${host}`)
    if (!isUp) continue
    servers.push(server)
    port = (server.address() as AddressInfo).port
  }
  const own = ['127.0.0.2', '127.0.0.3', '127.1.2.3', '127.2', '2130706434', '0x7f000003', '[::1]', '[::ffff:7f00:2]']
  const others = ['169.254.169.254', '10.0.0.1', '192.168.0.10', '100.100.100.200', '[fd00:ec2::254]', '[fe80::1]']
  const hosts = [...own, ...others, '0.0.0.0', '[::]', '[64:ff9b::a9fe:a9fe]']
  return {
    url: `http://127.0.0.2:${port}`,
    connections: () => connections,
    /** URL with a forbidden address. */
    inner(random: Random): string {
      const path = oneOf(random, ['', '/latest/meta-data', '/v2/', '/token?a=b', '/%2e%2e/', '/v2/app/manifests/1.0'])
      const host = oneOf(random, random.below(3) ? hosts : [...innerNames.keys()])
      return `http://${host}:${port}${path}`
    },
    async [Symbol.asyncDispose]() {
      for (const server of servers) {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      }
    },
  }
}

/** Adds a valid image with a tag to the upstream. */
export function publishAt(there: TestUpstream, tag: string, extra: Json = {}, bytes = 300) {
  const layer = there.add(randomBytes(bytes), types.layer)
  const config = there.add(JSON.stringify({ architecture: 'amd64', os: 'linux', at: randomBytes(8) }), types.config)
  const image = there.add(JSON.stringify(imageOf(config, [layer], extra)), types.image)
  if (tag !== '') there.tags.set(tag, image.digest)
  return { image, layer, config }
}

/** Adds a valid image with a signature of each kind. */
export function publishSigned(there: TestUpstream, tag: string, bytes: number) {
  const good = publishAt(there, tag, {}, bytes)
  const signature = publishAt(there, '', { subject: good.image, artifactType: 'a/signature' })
  const name = `${good.image.digest.replace(':', '-')}.sig`
  return { ...good, tag, signature, named: publishAt(there, name), name }
}

type Published = ReturnType<typeof publishSigned>
/** `inner` returns a forbidden address. `answer` adds a fault, which is tried before earlier ones. */
export type Hostile = {
  there: TestUpstream
  good: Published
  random: Random
  inner(): string
  answer(fault: Fault): void
}

const raw =
  (answer: (res: ServerResponse) => void): Fault =>
  (_req, res) => {
    answer(res)
    return true
  }

/** Sends bytes until the client stops reading. */
const endless = (mediaType: string, headers: Record<string, string> = {}): Fault =>
  raw((res) => {
    res.writeHead(200, { 'content-type': mediaType, ...headers })
    const chunk = Buffer.alloc(64 * 1024, 'a')
    const go = (): void => {
      while (!res.destroyed && res.write(chunk));
      if (!res.destroyed) res.once('drain', go)
    }
    go()
  })

const kindsOfPath = ['/manifests/', '/blobs/', '/referrers/', '/tags/', '/_svc/history/', '/_oci/tag-history/']
/** Fault for GET requests whose URL contains the text. */
const at =
  (what: string, fault: Fault): Fault =>
  (req, res) =>
    req.method === 'GET' && req.url?.includes(what) === true ? fault(req, res) : false
const json = (body: unknown, headers: Record<string, string> = {}, mediaType = 'application/json'): Fault =>
  raw((res) => void res.writeHead(200, { 'content-type': mediaType, ...headers }).end(JSON.stringify(body)))
const replace = (there: TestUpstream, digest: string, bytes: Buffer | string): void => {
  there.contents.set(digest, { ...there.contents.get(digest)!, bytes: Buffer.from(bytes) })
}
/** Manifest of another image that has the same contents. */
const otherOf = ({ config, layer }: Pick<Published, 'config' | 'layer'>, random: Random): string =>
  JSON.stringify(imageOf(config, [layer], { annotations: { note: 'a'.repeat(sizeOf(random, 5_000_000)) } }))
/** Puts a manifest under the tag. It is valid except for the given fields. */
const saying =
  (text: (random: Random) => string, mediaType: string = types.image) =>
  ({ there, good, random }: Hostile) => {
    there.tags.set(good.tag, there.add(text(random), mediaType).digest)
  }
const challenge = (realm: string) => answering(401, { 'www-authenticate': `Bearer realm="${realm}",service="x"` })
const noDigest = (random: Random): string =>
  oneOf(random, [
    'sha256:../../etc/passwd',
    'sha256:',
    `sha256:${'A'.repeat(64)}`,
    'md5:00',
    `sha512:${'0'.repeat(64)}`,
  ])
const unknown = (random: Random): string => digestOf(`nowhere ${random.below(1e9)}`)

type Kinds = Readonly<Record<string, (at: Hostile) => void>>

const leading: Kinds = {
  'leads to where nobody may go': ({ answer, inner }) => answer(answering(307, { location: inner() })),
  'leads to where nobody may go for one kind of content': ({ answer, inner, random }) => {
    const status = oneOf(random, [301, 302, 303, 307, 308])
    answer(at(oneOf(random, kindsOfPath), answering(status, { location: inner() })))
  },
  'leads there after some steps': ({ there, answer, inner, random }) => {
    let left = sizeOf(random, 5)
    const target = inner()
    answer((req, res) => answering(307, { location: left-- > 0 ? `${there.url}${req.url}` : target })(req, res))
  },
  'asks for a token where nobody may go': ({ answer, inner }) => answer(challenge(inner())),
  'asks for a token at a file': ({ answer }) => answer(challenge('file:///etc/passwd')),
  'asks for a token for ever': ({ there, answer }) =>
    answer((req, res) => {
      const isToken = req.url?.startsWith('/token') === true
      return isToken ? json({ token: 'never-good' })(req, res) : challenge(`${there.url}/token`)(req, res)
    }),
  'leads round in a circle': ({ there, answer }) =>
    answer((req, res) => answering(307, { location: `${there.url}${req.url}` })(req, res)),
}

const contents: Kinds = {
  'has a manifest without its digest': ({ there, good, random }) =>
    replace(there, good.image.digest, otherOf(good, random)),
  'has blobs without their digest': ({ there, good, random }) => {
    replace(there, good.layer.digest, randomBytes(sizeOf(random, 2_000_000)))
    replace(there, good.config.digest, '{}')
  },
  'sends a manifest that does not end': ({ answer }) => answer(at('/manifests/', endless(types.image))),
  'sends a blob that does not end': ({ answer }) => answer(at('/blobs/', endless(types.layer))),
  'sends a blob that does not end and says that it does': ({ good, answer, random }) => {
    const length = String(oneOf(random, [2 ** 40, 1e15, 300]))
    answer(at('/blobs/', endless(types.layer, { 'content-length': length, etag: good.layer.digest })))
  },
  'breaks off in the middle': ({ answer, random }) => {
    const [length, sent] = [sizeOf(random, 1e9), sizeOf(random, 100_000)]
    const cut = (res: ServerResponse) => {
      res.writeHead(200, { 'content-length': length + sent }).write(Buffer.alloc(sent), () => res.destroy())
    }
    answer(at(oneOf(random, kindsOfPath), raw(cut)))
  },
  'packs what it sends': ({ there, good, answer }) =>
    answer(
      at(
        '/manifests/',
        raw((res) => {
          res.writeHead(200, { 'content-type': types.image, 'content-encoding': 'gzip' })
          res.end(gzipSync(there.contents.get(good.image.digest)!.bytes))
        }),
      ),
    ),
  'has a manifest that is no JSON': saying((random) => 'not a manifest '.repeat(sizeOf(random, 1000))),
  'has a manifest of great depth': saying((random) => {
    const depth = sizeOf(random, 1_000_000)
    return `${'['.repeat(depth)}${']'.repeat(depth)}`
  }),
  'has an image and index in one': saying(() => JSON.stringify({ ...imageOf(at0(), []), manifests: [] })),
  'has an index of an index without end': saying((random) => {
    const digest = unknown(random)
    return JSON.stringify(indexOf([{ mediaType: types.index, digest, size: oneOf(random, [1e15, -1, 0, 2 ** 53]) }]))
  }, types.index),
  'has two members of one name': saying(() => '{"schemaVersion":2,"schemaVersion":2,"config":{},"layers":[]}'),
  'lists layers that are not there': saying((random) => {
    const layers = Array.from({ length: sizeOf(random, 5000) }, () => {
      return { mediaType: types.layer, digest: random.below(100) ? unknown(random) : noDigest(random), size: 1 }
    })
    return JSON.stringify(imageOf(at0(), layers))
  }),
}

const answers: Kinds = {
  'closes each connection': ({ answer }) => answer(raw((res) => res.destroy())),
  'is broken': ({ answer, random }) => answer(answering(oneOf(random, [500, 502, 504, 418, 204, 206]))),
  'answers with a page': ({ answer }) =>
    answer(raw((res) => void res.writeHead(200, { 'content-type': 'text/html' }).end('<html>'))),
  'answers with too many headers': ({ answer, random }) => {
    const [many, long] = [sizeOf(random, 1000), sizeOf(random, 1000)]
    answer(
      raw((res) => {
        for (let i = 0; i < many; i++) res.setHeader(`x-${i}`, 'a'.repeat(long))
        res.writeHead(200).end('{}')
      }),
    )
  },
  'says another digest than it has': ({ answer, random }) => {
    const headers = { 'docker-content-digest': unknown(random), 'content-type': types.image }
    answer((req, res) => req.method === 'HEAD' && answering(200, headers)(req, res))
  },
  'says a digest that is none': ({ answer, random }) =>
    answer(answering(200, { 'docker-content-digest': noDigest(random), 'content-type': types.image })),
  'says a digest beside an error': ({ answer, random }) => {
    const headers = { 'docker-content-digest': unknown(random), 'retry-after': oneOf(random, ['1', '1e9', 'never']) }
    answer((req, res) => req.method === 'HEAD' && answering(oneOf(random, [403, 429, 500, 503]), headers)(req, res))
  },
  'says that it is another time': ({ answer, random }) => {
    const date = new Date(Date.now() + (random.below(2) ? 1 : -1) * random.below(1e12)).toUTCString()
    answer((_req, res) => {
      res.sendDate = false
      res.setHeader('date', date).setHeader('last-modified', date).setHeader('age', '1000000')
      return false
    })
  },
}

const tagList = (random: Random, url: string): string =>
  oneOf(random, [
    `<${url}>; rel="next"`,
    '</v2/app/tags/list?n=1&last=a>; rel="next"',
    '<//[>; rel=next',
    '<?>; rel=next',
  ])

const lists: Kinds = {
  'has names of tags that are none': ({ answer, random }) => {
    const names = ['../../etc/passwd', '', ' ', '1.0/../2.0', '1.0?a', 'ä', '\u0000', 7, null, {}, 'a'.repeat(200)]
    answer(at('/tags/', json({ name: 'app', tags: Array.from({ length: 30 }, () => oneOf(random, names)) })))
  },
  'has a list of tags that does not end': ({ answer, inner, random }) => {
    const link = tagList(random, inner())
    let page = 0
    answer((req, res) => {
      const tags = Array.from({ length: 1 + random.below(50) }, (_, i) => `9.${page}-${i}`)
      page++
      return at('/tags/', json({ name: 'app', tags }, { link }))(req, res)
    })
  },
  'has a list of tags that is too long': ({ answer, random }) => {
    const tags = Array.from({ length: 5001 + sizeOf(random, 200_000) }, (_, i) => `9.${i}`)
    answer(at('/tags/', json({ name: 'app', tags })))
  },
  'has no list where one should be': ({ answer, random }) => {
    const body = oneOf(random, [null, [], 'tags', 7, { tags: 'all', manifests: 'all', history: 'all' }, { tags: {} }])
    answer(at(oneOf(random, kindsOfPath.slice(2)), json(body)))
  },
}

/** Faults in the referrers of an image. */
const about: Kinds = {
  'names referrers that are not there': ({ answer, inner, random }) => {
    const manifests = Array.from({ length: sizeOf(random, 10_000) }, () => {
      return { mediaType: types.image, digest: random.below(10) ? unknown(random) : noDigest(random), size: 5 }
    })
    const link = `<${inner()}>; rel="next"`
    answer(at('/referrers/', json(indexOf(manifests), { link }, types.index)))
  },
  'names referrers that are about something else': ({ there, answer, random }) => {
    const other = { mediaType: types.image, digest: unknown(random), size: 5 }
    const strangers = Array.from({ length: sizeOf(random, 50) }, () => publishAt(there, '', { subject: other }).image)
    answer(at('/referrers/', json(indexOf(strangers), {}, types.index)))
  },
  'names the image as what is about itself': ({ there, good, answer }) => {
    const self = there.add(JSON.stringify(indexOf([good.image], { subject: good.image })), types.index)
    answer(at('/referrers/', json(indexOf([self, good.image, self]), {}, types.index)))
  },
  'has signatures without their digest': ({ there, good, random }) => {
    for (const one of [good.signature, good.named]) replace(there, one.image.digest, otherOf(one, random))
  },
  'has a signature whose contents are not there': ({ there, good }) => {
    for (const one of [good.signature, good.named]) there.contents.delete(one.layer.digest)
  },
  'moves the tags of signatures with each look': ({ there, good, answer, random }) =>
    answer((req, res) => {
      if (req.method !== 'HEAD' || !/\/sha256-/.test(req.url ?? '')) return false
      const lie = random.below(2) ? unknown(random) : noDigest(random)
      const digest = oneOf(random, [good.image.digest, good.layer.digest, lie, publishAt(there, '').image.digest])
      return answering(200, { 'docker-content-digest': digest, 'content-type': types.image })(req, res)
    }),
}

/** Faults in the reported tag history. A page with one invalid record must be ignored as a whole. */
const pasts: Kinds = {
  'tells a past with one wrong thing in it': ({ answer, random }) => {
    const right = rightPast(random, sizeOf(random, 1500))
    right.splice(random.below(right.length + 1), right.length, wrongRecord(random) as Json)
    answer(at('/_svc/history/', json({ history: right })))
  },
  'tells a past as the draft has it, of wrong times or digests': ({ answer, random }) => {
    const told: unknown[] = draftsOf(rightPast(random, sizeOf(random, 50)))
    const wrong = oneOf(random, [draftOf(ahead(random), lied(random)), draftOf(ago(1), noDigest(random)), null, {}])
    told.splice(random.below(told.length), 1, wrong)
    answer(at('/_oci/tag-history/', json({ schemaVersion: 2, manifests: told })))
    answer(at('/_svc/history/', answering(404)))
  },
  'tells a past without an end': ({ answer, inner, random }) => {
    const manifests = draftsOf(rightPast(random, 1 + random.below(20)))
    const link = oneOf(random, [`<${inner()}>; rel="next"`, `<${inner()}?n=1>; rel="next"`, '<?n=1>; rel="next"'])
    answer(at('/_oci/tag-history/', json({ schemaVersion: 2, manifests }, { link })))
    answer(at('/_svc/history/', answering(404)))
  },
  'tells the same past for ever': ({ answer, random }) => {
    const [one] = rightPast(random, 1)
    answer(at('/_svc/history/', json({ history: Array.from({ length: 1000 }, () => one) })))
  },
  'tells another past each time': ({ answer, random }) =>
    answer((req, res) => {
      const isLong = random.below(2) === 1
      const times = Array.from({ length: isLong ? 12_000 : 1 + random.below(3) }, () => ahead(random)).sort()
      const past = times.map((updateTimestamp) => ({ updateTimestamp, digest: lied(random) }))
      return at('/_svc/history/', json({ history: past }))(req, res)
    }),
}

/** Applies the faults of each kind before the mirror checks the upstream. Only valid content may be stored. */
export const hostile: Kinds = { ...leading, ...contents, ...answers, ...lists, ...about, ...pasts }

const day = 24 * 3_600_000
const ago = (days: number): string => new Date(Date.now() - days * day).toISOString()
const ahead = (random: Random): string => new Date(Date.now() + (365 + random.below(1000)) * day).toISOString()
const liesBegin = digestOf('a lie').slice(0, 40)
/** A valid digest without content, by which tests recognize a record. */
const lied = (random: Random): string => liesBegin + String(random.below(1e9)).padStart(71 - liesBegin.length, '0')
export const isLied = (digest: string): boolean => digest.startsWith(liesBegin)

/** Oldest first. */
export function rightPast(random: Random, count: number): Json[] {
  const begin = Date.now() - (2 + random.below(100)) * day
  return Array.from({ length: count }, (_, i) => {
    return { updateTimestamp: new Date(begin + i * 1000).toISOString(), digest: digestOf(`right ${i}`) }
  })
}

function wrongRecord(random: Random): unknown {
  const digest = lied(random)
  return oneOf(random, [
    { updateTimestamp: ahead(random), digest },
    { updateTimestamp: ago(4000), digest, checkedBefore: ago(3000) },
    { updateTimestamp: '2026-13-45T99:00:00Z', digest },
    { updateTimestamp: ago(1), digest: noDigest(random) },
    { updateTimestamp: ago(1) },
    { digest },
    null,
    [],
    'a record',
    { updateTimestamp: 1e12, digest },
  ])
}

/** Newest first. */
const draftsOf = (past: readonly Json[]): Json[] =>
  past.map(({ updateTimestamp, digest }) => draftOf(updateTimestamp, digest)).toReversed()

function draftOf(time: string, digest: string): Json {
  const annotation = 'org.opencontainers.distribution.tag'
  const annotations = { [`${annotation}.timestamp`]: time, [`${annotation}.event`]: 'updated' }
  return { mediaType: 'application/octet-stream', size: 0, digest, annotations }
}

function at0() {
  return { mediaType: types.config, digest: digestOf('config'), size: 6 }
}
