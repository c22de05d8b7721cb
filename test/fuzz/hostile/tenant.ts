// Attacks of one organization's owner on others, through the API and the registry.

import { personUid } from '#domains/iam/identities/people.ts'
import { AdvisoriesService } from '#gen/pinfold/vulnerabilities/v2/advisories_pb.ts'
import { GrpcError, grpcClientOf } from '../../support/grpc.ts'
import { roleUids } from '../../support/pinfold.ts'
import { oneOf } from '../../support/random.ts'
import { mutate } from '../mutate.ts'
import type { Kinds } from './kinds.ts'
import type { World } from './world.ts'

const name = 'evil/app'
const mostValues = 1000

export async function tenantKinds(world: World): Promise<Kinds> {
  const { evil, issuer, sinks } = world
  const { owner } = evil
  const victim = personUid(issuer.url, 'victim')
  const post = async (path: string, body: object) => (await owner.call('POST', path, body)).status
  const encoded = (text: string) => encodeURIComponent(text.toWellFormed())
  let pageToken = ''
  let sinkCount = 0

  return {
    ...(await pushKinds(world)),
    'bindings of a person': {
      every: 300,
      async attack(random) {
        const role = oneOf(random, [roleUids.viewer, roleUids.owner, roleUids.pull])
        if (random.below(3) > 0) return post(`/iam/v2/roleBindings/${evil.uid}`, { identityUid: victim, roleUid: role })
        const folder = await owner.call('POST', `/iam/v2/groups/${evil.uid}`, { name: `trap-${random.below(50)}` })
        const requests = Array.from({ length: 25 }, () => ({ roleBinding: { identityUid: victim, roleUid: role } }))
        const parent = String(folder.json.uid ?? evil.uid)
        return [folder.status, await post('/iam/v2/roleBindings:batchCreate', { parent, requests })]
      },
    },
    'hostile names': {
      every: 100,
      attack(random) {
        const hostile = mutate(
          random,
          oneOf(random, ['web', 'at-20260101', 'public', '<b>x</b>', 'x'.repeat(300), '\u202eevil']),
        )
        const kind = oneOf(random, ['iam/v2/groups', 'registry/v2/repos', 'iam/v2/roles', 'iam/v2/identities'])
        const where = random.below(10) === 0 ? encoded(mutate(random, evil.uid)) : evil.uid
        const more = { description: mutate(random, 'x'.repeat(600)), capabilities: ['repo.list', hostile] }
        return post(`/${kind}/${where}`, { name: hostile.toWellFormed(), ...(kind === 'iam/v2/roles' ? more : {}) })
      },
    },
    'page tokens': {
      every: 100,
      async attack(random) {
        const list = oneOf(random, [
          'registry/v2/repos',
          'iam/v2/groups',
          'registry/v2/tags',
          'iam/v2/roleBindings',
          'events/v2/audit',
        ])
        const token = random.below(3) === 0 ? pageToken : mutate(random, pageToken || 'x')
        const order = oneOf(random, ['', 'name desc', '__proto__', mutate(random, 'name')])
        const path = `/${list}?page_size=${oneOf(random, [1, 200, 2 ** 31 - 1])}&page_token=${encoded(token)}&order_by=${encoded(order)}&skip=${oneOf(random, [0, 1, 2 ** 31 - 1])}`
        const { status, json } = await owner.call('GET', path)
        if (typeof json.nextPageToken === 'string' && json.nextPageToken !== '') pageToken = json.nextPageToken
        return status
      },
    },
    'filters at their bound': {
      every: 250,
      async attack(random) {
        const many = (word: string) => Array.from({ length: mostValues }, (_, i) => `${word}-${i}`)
        using client = grpcClientOf(world, AdvisoriesService, owner.api)
        const filters = {
          aliases: many('CVE-2024'),
          artifactNames: many('Package'),
          componentNames: many('x'),
          eventAuthors: many('author'),
        }
        const chosen = Object.fromEntries(Object.entries(filters).filter(() => random.below(2) === 0))
        const query = oneOf(random, ['', 'a', '%_%', 'x'.repeat(256)])
        try {
          await client.listAdvisories({
            ...chosen,
            excludeEventAuthors: many('reviewer'),
            query,
            pageSize: 200,
            skip: random.below(500),
          })
          return 'grpc 0'
        } catch (error) {
          if (error instanceof GrpcError) return `grpc ${error.code}`
          throw error
        }
      },
    },
    'sinks that do not answer': {
      every: 2000,
      attack: () => {
        const how = ['never', 'slow', 'large', 'cut', 'moved', 'error'][sinkCount % 6]!
        return post(`/events/v2/subscriptions/${evil.uid}`, { sink: `${sinks.url}/${how}/${sinkCount++}` })
      },
    },
    'sinks at private addresses': {
      every: 1000,
      attack(random) {
        const host = oneOf(random, [
          '169.254.169.254',
          '10.0.0.1',
          '[::1]',
          '[::ffff:10.0.0.1]',
          '0.0.0.0',
          '2130706433',
          'localhost',
          '127.1',
        ])
        return post(`/events/v2/subscriptions/${evil.uid}`, { sink: `http://${host}:1/${random.below(1e6)}` })
      },
    },
    'streams that nobody reads': {
      every: 2000,
      atOnce: 30,
      async attack() {
        const abort = AbortSignal.timeout(60_000)
        const headers = { authorization: `Bearer ${owner.api}`, 'x-forwarded-for': '203.0.113.66' }
        const { status, body } = await fetch(`${world.url}/events/v2/stream?after=0`, { headers, signal: abort })
        if (status === 200) await new Promise((resolve) => abort.addEventListener('abort', resolve))
        else await body?.cancel()
        return status
      },
    },
  }
}

async function pushKinds({ evil: { owner } }: World): Promise<Kinds> {
  let upload = ''
  let offset = 0
  const digests: string[] = []
  const config = '{}'
  const type = { 'content-type': 'application/vnd.oci.image.manifest.v1+json' }
  const described = {
    mediaType: 'application/vnd.oci.empty.v1+json',
    digest: 'sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',
    size: 2,
  }
  await owner.oci('POST', `${name}/blobs/uploads/?digest=${described.digest}`, config)
  for (let i = 0; i < 8; i++) {
    const manifest = {
      schemaVersion: 2,
      mediaType: type['content-type'],
      config: described,
      layers: [],
      annotations: { i: String(i) },
    }
    const { headers } = await owner.oci('PUT', `${name}/manifests/v${i}`, JSON.stringify(manifest), type)
    digests.push(JSON.stringify(manifest), String(headers['docker-content-digest']))
  }
  return {
    'uploads that are left': {
      every: 100,
      async attack(random) {
        const from = oneOf(random, ['', `?mount=${digests[1]}&from=acme/app-1`, '?mount=sha256:x&from=../../x'])
        return (await owner.oci('POST', `${name}/blobs/uploads/${from}`)).status
      },
    },
    'thousands of chunks': {
      every: 20,
      atOnce: 1,
      async attack(random) {
        if (upload === '') {
          const { status, headers } = await owner.oci('POST', 'evil/chunks/blobs/uploads/')
          upload = String(headers.location ?? '')
          offset = 0
          return status
        }
        const range = random.below(20) === 0 ? `${random.below(1e9)}-${random.below(1e9)}` : `${offset}-${offset}`
        const { status } = await owner.oci('PATCH', upload, 'x', {
          'content-range': range,
          'content-type': 'application/octet-stream',
        })
        if (status === 202) offset++
        else if (status !== 416) upload = ''
        return status
      },
    },
    'tags that move': {
      every: 30,
      async attack(random) {
        const manifest = digests[2 * random.below(8)]!
        return (await owner.oci('PUT', `${name}/manifests/t${random.below(3)}`, manifest, type)).status
      },
    },
  }
}
