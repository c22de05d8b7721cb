// Expensive requests of one tenant, with a given number in parallel, which ignore `Retry-After`. Runs as a separate process, so
// that it does not delay the measurement. When its input ends, it prints the results of its requests.
import { createHash, randomBytes } from 'node:crypto'
import { Agent, request } from 'node:http'

export type Attack = {
  url: string
  kind: keyof typeof kinds
  lanes: number
  token: string
  registryToken: string
  org: string
  repo: string
  /** A configuration in the repository that manifests may name. */
  blob: string
  blobSize: number
}

type Sent = { method: string; path: string; type: string; token: string; body: Buffer }

const json = 'application/json'
const index = 'application/vnd.oci.image.index.v1+json'
const image = 'application/vnd.oci.image.manifest.v1+json'
const MiB = 1024 * 1024

/** Manifests that an index lists. They must be pushed before the index. */
export const namedManifests = 1900

type Config = Pick<Attack, 'blob' | 'blobSize'>

/** One of them. */
export function manifestNumber({ blob, blobSize }: Config, n: number): string {
  const config = { mediaType: 'application/vnd.oci.image.config.v1+json', digest: blob, size: blobSize }
  return JSON.stringify({ schemaVersion: 2, mediaType: image, config, layers: [], annotations: { n: `${n}` } })
}

function indexesOf({ registryToken }: Attack, named: readonly { digest: string; size: number }[]): (i: number) => Sent {
  const platform = { os: 'linux', architecture: 'amd64', variant: 'v2' }
  const entry = { mediaType: image, platform, annotations: { a: 'b' } }
  const manifests = named.map((one) => ({ ...entry, ...one }))
  return (i) => {
    const content = { schemaVersion: 2, mediaType: index, manifests, annotations: { i: `${i}` } }
    const body = Buffer.from(JSON.stringify(content))
    return { method: 'PUT', path: `/v2/noisy/app/manifests/i${i % 50}`, type: index, token: registryToken, body }
  }
}

/** Attacks by name. Each function sends request number `i`. */
export const kinds = {
  'manifests with 900 annotations': ({ blob, blobSize, registryToken }: Attack) => {
    const entry = { digest: blob, size: blobSize }
    const annotations = Object.fromEntries(Array.from({ length: 900 }, (_, n) => [`example.${n}`, 'x'.repeat(100)]))
    return (i: number): Sent => {
      const config = { mediaType: 'application/vnd.oci.image.config.v1+json', ...entry }
      const manifest = {
        schemaVersion: 2,
        mediaType: image,
        config,
        layers: [],
        annotations: { ...annotations, i: `${i}` },
      }
      const body = Buffer.from(JSON.stringify(manifest))
      return { method: 'PUT', path: `/v2/noisy/app/manifests/m${i % 50}`, type: image, token: registryToken, body }
    }
  },
  'indexes of 1,900 manifests': (attack: Attack) => {
    const named = Array.from({ length: namedManifests }, (_, n) => {
      const text = manifestNumber(attack, n)
      return { digest: `sha256:${createHash('sha256').update(text).digest('hex')}`, size: text.length }
    })
    return indexesOf(attack, named)
  },
  'indexes of 1,900 missing manifests': (attack: Attack) => {
    const newDigest = () => `sha256:${randomBytes(32).toString('hex')}`
    const named = Array.from({ length: namedManifests }, () => ({ digest: newDigest(), size: 1000 }))
    return indexesOf(attack, named)
  },
  'lists of 200 repositories': ({ org, token }: Attack) => {
    const path = `/registry/v2/repos?uidp.descendants_of=${org}&order_by=name&page_size=200`
    return (): Sent => ({ method: 'GET', path, type: json, token, body: Buffer.alloc(0) })
  },
  'bodies of 4 MiB': ({ repo, token }: Attack) => {
    const members = Array.from({ length: 15_000 }, (_, i) => `"m${i}":${JSON.stringify('y'.repeat(240))}`)
    const body = Buffer.from(`{"description":"x","more":{${members.join(',')}}}`.slice(0, 4 * MiB))
    return (): Sent => ({ method: 'PATCH', path: `/registry/v2/repos/${repo}`, type: json, token, body })
  },
  'checks of claims against patterns': ({ org, token }: Attack) => {
    const claims = JSON.stringify({ iss: 'https://issuer.example', sub: 'a'.repeat(60), aud: 'x' })
    return (i: number): Sent => {
      // Each pattern is new, since the server caches compiled patterns.
      const match = { issuer: 'https://issuer.example', subjectPattern: `(a?){30}a{30}b|${i}` }
      const body = Buffer.from(JSON.stringify({ claims, match }))
      return { method: 'POST', path: `/control/v1/claimChecks/${org}`, type: json, token, body }
    }
  },
} satisfies Record<string, (attack: Attack) => (i: number) => Sent>

function send(url: string, agent: Agent, { method, path, type, token, body }: Sent): Promise<string> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': type, 'content-length': body.length }
    const req = request(new URL(path, url), { agent, method, headers }, (res) => {
      res.resume()
      res.once('close', () => resolve(String(res.statusCode)))
    })
    req.once('error', () => resolve('connection lost'))
    req.end(body)
  })
}

async function attack(of: Attack): Promise<void> {
  const make = kinds[of.kind](of)
  const agent = new Agent({ keepAlive: true, maxSockets: of.lanes })
  const answers: Record<string, number> = {}
  let [next, isOver] = [0, false]
  process.stdin.resume().once('end', () => {
    isOver = true
  })
  const runLane = async () => {
    while (!isOver) {
      const status = await send(of.url, agent, make(next++))
      answers[status] = (answers[status] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: of.lanes }, runLane))
  agent.destroy()
  process.stdout.write(JSON.stringify(answers))
}

if (import.meta.main) await attack(JSON.parse(process.argv[2]!) as Attack)
