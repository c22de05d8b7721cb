// Opens copies of data from earlier releases, and compares the responses of this version with the recorded ones.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { operatorUid } from '#issuer/access-token.ts'
import { checks, verify } from '../../src/maintenance/verify.ts'
import { ok } from '../support/expect.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { type Client, clientOf, type Json, roleUids } from '../support/pinfold.ts'
import { freeAddress, startProcess, tokenOf } from '../support/process.ts'
import { type RegistryClient, registryClient } from '../support/registry.ts'
import { type Answers, askAll, type Questions, type Section } from './ask.ts'
import { changes } from './changes.ts'
import { differencesOf } from './compare.ts'
import { pushSmall } from './images.ts'
import { openCopy } from './open.ts'
import { copyOf, type Release, readRelease, releases } from './release.ts'

const questionsIn = (answers: Answers): [Section, string][] =>
  Object.entries(answers).flatMap(([section, some]) => {
    return Object.keys(some).map((question): [Section, string] => [section as Section, question])
  })

for (const name of releases()) {
  describe(`the data of ${name}`, () => {
    const release = readRelease(name)

    test('an upgraded server gives the same answers as before', async (t) => {
      await using copy = await copyOf(name)
      await using server = await openCopy(release, copy)
      const sections = Object.entries(release.answers).map(([section, some]) => [section, Object.keys(some)])
      const questions = Object.fromEntries(sections) as Questions
      const answers = await askAll(server.asked, questions, release.answers)
      for (const section of Object.keys(questions) as Section[]) {
        await t.test(section, () => {
          const expected = { [section]: release.answers[section]! }
          assert.deepEqual(differencesOf(expected, answers, changes, name), {})
        })
      }
    })

    test('an upgraded server lets a person sign in, and a pull token pull', async () => {
      await using copy = await copyOf(name)
      await using server = await openCopy(release, copy)
      await signIn(release, server.asked.origin)
      const { user, password } = release.pullToken
      const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
      const repo = 'acme/payments/jdk'
      const path = `/token?service=x&scope=repository:${repo}:pull`
      const { token } = ok(
        await clientOf(server.asked.origin, undefined).call('GET', path, undefined, { authorization }),
      )
      const puller = registryClient(server.asked.origin, token)
      const { body } = await puller.ok(200, 'GET', `${repo}/manifests/21`)
      const [layer] = body.layers as Json[]
      assert.equal((await puller.ok(200, 'GET', `${repo}/blobs/${layer!.digest}`)).bytes.toString(), 'the layer of jdk')
      assert.equal((await puller.call('GET', 'acme/platform/edge/nginx/manifests/latest')).status, 403)
    })

    test('an upgraded server accepts writes', async () => {
      await using copy = await copyOf(name)
      await using server = await openCopy(release, copy)
      await write(release, server)
      // Counters and records of an earlier release are correct by the current rules.
      const found: unknown[] = []
      const only = checks.filter((check) => !['blobs', 'uploads', 'orphans'].includes(check))
      const { config } = server.pinfold.app
      await verify(config, { repair: false, hash: false, only, found: (finding) => found.push(finding) })
      assert.deepEqual(found, [])
    })

    test('the program serves the upgraded data, and its master key signs tokens', async () => {
      await using copy = await copyOf(name)
      const listen = await freeAddress()
      // The test sends nothing to the former sinks, because other programs may use their addresses now.
      const env = { PINFOLD_ALLOW_PRIVATE_ADDRESSES: 'off', PINFOLD_MIGRATE_AT_START: 'on' }
      await using server = await startProcess(copy, { listen, env })
      const operator = clientOf(`http://${listen}`, await tokenOf(copy))
      const { totalCount } = ok(await operator.get('/registry/v2/repos'))
      const before = release.answers.lists!['operator GET /registry/v2/repos?order_by=name&page_size=7'] as Json
      assert.equal(totalCount, before.totalCount)
      const registry = registryClient(`http://${listen}`, await tokenOf(copy, ['--audience', 'registry']))
      await pushSmall(registry, 'acme/web/node', 'pushed by the program', 'latest')
      await registry.ok(200, 'GET', 'acme/platform/edge/nginx/manifests/latest')
      server.kill('SIGTERM')
      assert.equal((await server.exited).code, 0)
    })
  })
}

test('each listed change applies to a recorded response of an earlier release', () => {
  for (const change of changes) {
    const shown = releases().some((name) =>
      questionsIn(readRelease(name).answers).some(([section, question]) => change.about(question, section, name)),
    )
    assert.ok(shown, change.why)
  }
})

/** The registered person, with a new token of the provider. */
async function signIn({ person, settings, now, callers }: Release, origin: string): Promise<void> {
  await using issuer = await startIssuerAt(new URL(person.issuer))
  assert.equal(issuer.url, person.issuer)
  const iat = Math.floor(Date.parse(now) / 1000)
  const { subject: sub, audience: aud } = person
  const shown = await issuer.token({ sub, aud, iat, exp: iat + 300, email: 'jane@example.com', email_verified: true })
  const exchange = `/sts/exchange?aud=${settings.PINFOLD_URL}`
  const { token } = ok(await clientOf(origin, shown).call('POST', exchange))
  assert.equal(ok(await clientOf(origin, token).get('/auth/v1/ok')).subject, callers.person)
}

/** The address is in the recorded data. Another run of this test may use it at the same time. */
async function startIssuerAt(url: URL): Promise<FakeIssuer> {
  for (;;) {
    try {
      return await startIssuer('RS256', '', Number(url.port))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
      await sleep(100)
    }
  }
}

/** Pushes, updates a tag, deletes a repository, creates a group and shares it, next to the existing data. */
async function write({ callers }: Release, { asked, pinfold }: Awaited<ReturnType<typeof openCopy>>): Promise<void> {
  const { operator } = pinfold
  const registry = registryClient(asked.origin, await asked.token(operatorUid, true))
  const group = async (name: string) => ok(await operator.get(`/iam/v2/groups?name=${name}`)).groups[0].uid as string
  const repo = async (parent: string, name: string): Promise<string> => {
    const query = `uidp.children_of=${await group(parent)}&name=${name}`
    return ok(await operator.get(`/registry/v2/repos?${query}`)).repos[0].uid
  }

  const jdk = await repo('payments', 'jdk')
  const before = (await registry.ok(200, 'GET', 'acme/payments/jdk/manifests/21')).headers['docker-content-digest']
  const { digest } = await pushSmall(registry, 'acme/payments/jdk', 'jdk after the upgrade', '21')
  const { records } = ok(await operator.get(`/registry/v2/repos/${jdk}/tagHistory?tag=21`))
  assert.deepEqual(
    (records as Json[]).map((one) => [one.event, one.digest, one.previousDigest]),
    [
      ['EVENT_MOVED', digest, before],
      ['EVENT_CREATED', before, ''],
    ],
  )
  ok(await operator.post(`/registry/v2/tags/${jdk}`, { name: '21', digest: before }))
  await registry.ok(200, 'GET', `acme/payments/jdk/manifests/${digest}`)

  await useReservedName(operator, registry)

  const total = async () => Number(ok(await operator.get('/registry/v2/repos')).totalCount)
  const repos = await total()
  ok(await operator.delete(`/registry/v2/repos/${await repo('web', 'go')}`))
  assert.equal(await total(), repos - 1)

  const { uid } = ok(await operator.post(`/iam/v2/groups/${await group('data')}`, { name: 'after-the-upgrade' }))
  const person = await pinfold.as(callers.person!)
  const seen = async () => (await clientOf(asked.origin, person.token).get(`/iam/v2/groups/${uid}`)).status
  assert.equal(await seen(), 403)
  ok(await operator.post(`/iam/v2/roleBindings/${uid}`, { identityUid: callers.person, roleUid: roleUids.viewer }))
  assert.equal(await seen(), 200)
}

/** An organization keeps a name that later became reserved, if the release contains one. */
async function useReservedName(operator: Client, registry: RegistryClient): Promise<void> {
  const [odd] = ok(await operator.get('/iam/v2/groups?name=at-20261101')).groups as Json[]
  if (!odd) return
  const description = 'Named before such names were reserved'
  assert.equal(ok(await operator.patch(`/iam/v2/groups/${odd.uid}`, { description })).name, 'at-20261101')
  await pushSmall(registry, 'at-20261101/odd', 'after the upgrade', 'latest')
  await registry.ok(200, 'GET', 'at-20261101/odd/manifests/depth-4')
}
