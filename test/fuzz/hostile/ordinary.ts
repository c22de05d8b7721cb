// Requests of ordinary users during the attacks. A wrong answer is a failure, and so is a rate limit.
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import type { Db } from '#db/sql.ts'
import { sql } from '#db/sql.ts'
import { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { ReposService } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { type GrpcClient, GrpcError, grpcClientOf } from '../../support/grpc.ts'
import { alpine } from '../../support/images.ts'
import { tarOf } from '../../support/layers.ts'
import { roleUids } from '../../support/pinfold.ts'
import { type Random, randomFrom } from '../../support/random.ts'
import { digestOf, imageOf, types } from '../../support/registry.ts'
import type { Got } from './send.ts'
import { office, peopleAudience, type User, type World } from './world.ts'

/** Requests of one user, one after the other. Each has its own pause. */
type Deed = { pauseMs: number; go(random: Random): Promise<void> }
export type Deeds = { times: Map<string, number[]>; failures: string[] }

const eventWithinMs = 60_000
const readWithinMs = 15 * 60_000

/** Runs all requests until `signal` is aborted. Resolves when the last one is done. */
export async function liveOrdinarily(world: World, db: Db, seed: number, done: Deeds, signal: AbortSignal) {
  const deeds = await deedsOf(world, db)
  await Promise.all(
    Object.entries(deeds).map(async ([name, { pauseMs, go }], i) => {
      const random = randomFrom(seed + 1000 + i)
      const times: number[] = []
      done.times.set(name, times)
      while (!signal.aborted) {
        const began = performance.now()
        await go(random).catch((error: Error) => {
          const said = error instanceof GrpcError ? `gRPC ${error.code} ${error.message}` : error.message
          done.failures.push(`${name}: ${said}`)
          console.log(
            `${new Date().toISOString()} FAILED ${name} after ${Math.round(performance.now() - began)} ms: ${said}`,
          )
        })
        times.push(performance.now() - began)
        await sleep(pauseMs, undefined, { signal }).catch(() => {})
      }
    }),
  )
}

function expect(got: Got, status: number, what: string): Got {
  if (got.status === status) return got
  throw new Error(`${what} answered ${got.status} and not ${status}: ${got.bytes.toString().slice(0, 300)}`)
}

async function deedsOf(world: World, db: Db): Promise<Record<string, Deed>> {
  const { acme, issuer, url, send, agent } = world
  const pusher = await world.user(acme.uid, 'acme-pusher', roleUids.push, office)
  const puller = await world.user(acme.uid, 'acme-puller', roleUids.pull, office)
  const subscribed = await acme.owner.call('POST', `/events/v2/subscriptions/${acme.uid}`, {
    sink: world.sinks.good,
  })
  expect(subscribed, 200, 'the subscription')
  const config = Buffer.from('{"architecture":"amd64","os":"linux"}')
  const layer = gzipSync(await tarOf(alpine('alpine-3.10')))
  let made = 0

  async function push(random: Random): Promise<{ name: string; digest: string }> {
    const name = `acme/app-${random.below(8)}`
    const own = gzipSync(await tarOf({ 'srv/data': randomBytes(20_000) }))
    for (const content of [config, layer, own]) {
      const digest = digestOf(content)
      expect(await pusher.oci('POST', `${name}/blobs/uploads/?digest=${digest}`, content), 201, 'a push of a blob')
    }
    const described = (mediaType: string, content: Buffer) => ({
      mediaType,
      digest: digestOf(content),
      size: content.length,
    })
    const manifest = JSON.stringify(
      imageOf(described(types.config, config), [described(types.layer, layer), described(types.layer, own)]),
    )
    const type = { 'content-type': types.image }
    expect(
      await pusher.oci('PUT', `${name}/manifests/v${random.below(5)}`, manifest, type),
      201,
      'a push of a manifest',
    )
    return { name, digest: digestOf(manifest) }
  }
  let last = await push(randomFrom(1))

  /** Exchanges a token of the CI platform for one of the server, and uses it. */
  async function exchanged(token: string, identity: string): Promise<string> {
    const search = new URLSearchParams({ aud: url, ...(identity === '' ? {} : { identity }) })
    const got = await send({ method: 'POST', path: `/sts/exchange?${search}`, token, from: office, agent })
    return String(expect(got, 200, 'an exchange').json.token)
  }
  const victim = () => issuer.token({ sub: 'victim', aud: peopleAudience, name: 'Jane Doe', email: 'jane@example.com' })
  const registered = await send({
    method: 'POST',
    path: '/auth/v1/register',
    token: await victim(),
    body: {},
    from: office,
    agent,
  })
  expect(registered, 200, 'the registration')

  return {
    pushes: {
      pauseMs: 500,
      async go(random) {
        last = await push(random)
      },
    },
    pulls: {
      pauseMs: 100,
      async go() {
        const { name, digest } = last
        const { bytes } = expect(await puller.oci('GET', `${name}/manifests/${digest}`), 200, 'a pull by digest')
        if (digestOf(bytes) !== digest) throw new Error('a manifest has another content')
        const [first, second] = JSON.parse(bytes.toString()).layers as { digest: string }[]
        for (const blob of [first!.digest, second!.digest]) {
          const got = expect(await puller.oci('GET', `${name}/blobs/${blob}`), 200, 'a pull of a blob')
          if (digestOf(got.bytes) !== blob) throw new Error('a blob has another content')
        }
        expect(await puller.oci('GET', `${name}/tags/list`), 200, 'a list of tags')
      },
    },
    logins: {
      pauseMs: 1000,
      async go() {
        const { name, digest } = last
        const password = await issuer.token({ sub: 'acme-puller', aud: url })
        const basic = `Basic ${Buffer.from(`${puller.uid}:${password}`).toString('base64')}`
        const scope = `repository:${name}:pull`
        const path = `/token?service=${new URL(url).host}&scope=${scope}`
        const { json } = expect(
          await send({ path, headers: { authorization: basic }, from: office, agent }),
          200,
          'a login',
        )
        const pulled = `/v2/${name}/manifests/${digest}`
        expect(
          await send({ path: pulled, token: String(json.token), from: office, agent }),
          200,
          'a pull with its token',
        )
      },
    },
    exchanges: {
      pauseMs: 1000,
      async go() {
        await exchanged(await issuer.token({ sub: 'acme-pusher', aud: url }), pusher.uid)
        // A user to whom the attackers give bindings in all of their groups.
        const token = await exchanged(await victim(), '')
        expect(
          await send({ path: '/control/v1/pendingBindings', token, from: office, agent }),
          200,
          'what waits for a person',
        )
      },
    },
    'images read': imagesRead(db, push),
    'REST calls': { pauseMs: 250, go: () => callRest(acme.owner, acme.uid, `rest-${made++}`) },
    'gRPC calls': grpcCalls(world, acme.owner, acme.uid),
    events: {
      pauseMs: 2000,
      async go() {
        const created = await acme.owner.call('POST', `/registry/v2/repos/${acme.uid}`, { name: `event-${made++}` })
        const uid = String(expect(created, 200, 'CreateRepo').json.uid)
        const came = await world.sinks.about(uid, eventWithinMs)
        expect(await acme.owner.call('DELETE', `/registry/v2/repos/${uid}`), 200, 'DeleteRepo')
        if (!came) throw new Error(`no event came within ${eventWithinMs / 1000} s`)
      },
    },
  }
}

async function callRest(owner: User, org: string, name: string): Promise<void> {
  const repo = expect(await owner.call('POST', `/registry/v2/repos/${org}`, { name }), 200, 'CreateRepo').json
  expect(await owner.call('GET', `/registry/v2/repos/${repo.uid}`), 200, 'GetRepo')
  expect(await owner.call('PATCH', `/registry/v2/repos/${repo.uid}`, { description: 'new' }), 200, 'UpdateRepo')
  const page = expect(
    await owner.call('GET', `/registry/v2/repos?uidp.descendants_of=${org}&page_size=20`),
    200,
    'ListRepos',
  )
  if (page.json.repos.length === 0) throw new Error('ListRepos has lost all')
  expect(await owner.call('GET', `/iam/v2/groups/${org}`), 200, 'GetGroup')
  expect(await owner.call('GET', `/iam/v2/roleBindings?group=${org}`), 200, 'ListRoleBindings')
  expect(await owner.call('DELETE', `/registry/v2/repos/${repo.uid}`), 200, 'DeleteRepo')
}

function grpcCalls({ port }: World, owner: User, org: string): Deed {
  let token = ''
  let groups: GrpcClient<typeof GroupsService>
  let repos: GrpcClient<typeof ReposService>
  let made = 0
  return {
    pauseMs: 250,
    async go() {
      if (token !== owner.api) {
        token = owner.api
        groups = grpcClientOf({ port }, GroupsService, token)
        repos = grpcClientOf({ port }, ReposService, token)
      }
      const group = await groups.createGroup({ parent: org, group: { name: `grpc-${made++}` } })
      await groups.updateGroup({
        group: { uid: group.uid, description: 'new' },
        updateMask: { paths: ['description'] },
      })
      const repo = await repos.createRepo({ parent: group.uid, repo: { name: 'web' } })
      await repos.getRepo({ uid: repo.uid })
      await repos.listRepos({ uidp: { descendantsOf: group.uid } })
      await repos.deleteRepo({ uid: repo.uid })
      await groups.deleteGroup({ uid: group.uid })
    },
  }
}

/** Pushes an image and waits until the server has read its contents. The wait does not delay other requests. */
function imagesRead(db: Db, push: (random: Random) => Promise<{ digest: string }>): Deed {
  return {
    pauseMs: 10_000,
    async go(random) {
      const { digest } = await push(random)
      for (const began = performance.now(); ; await sleep(1000)) {
        const row = await db.get<{ state: number; reason: string }>(
          sql`SELECT state, reason FROM image_contents WHERE digest = ${digest}`,
        )
        if (row?.state === 1) return
        if (row) throw new Error(`an image counts as unreadable: ${row.reason}`)
        if (performance.now() - began > readWithinMs)
          throw new Error(`an image was not read in ${readWithinMs / 60_000} minutes`)
      }
    },
  }
}
