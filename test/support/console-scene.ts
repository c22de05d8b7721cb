// Server with content for every screen of the console.

import { backfillLedgers, sequenceLedgers } from '#domains/ledger/ledger.job.ts'
import { sweepRetention } from '#domains/policy/retention/plans.job.ts'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { keysOf, pemOf } from './attest.ts'
import { runJob } from './background-jobs.ts'
import { pushLayers, pushSbom } from './images.ts'
import { clientSecret } from './people-provider.ts'
import { type Json, type Pinfold, roleUids } from './pinfold.ts'
import { digestOf, type RegistryClient, registryClient } from './registry.ts'
import { apkLayer, readSource, recordAbout } from './scanning.ts'
import { startSignInScene } from './sign-in.ts'

export type ConsoleScene = Awaited<ReturnType<typeof startConsoleScene>>

const day = 86_400_000

const readme = `# Ledger

Keeps the *books*, see [the manual](https://manual.example.com) or run:

- \`docker pull\`
- **nothing** else

\`\`\`
crane digest
\`\`\`
`

export async function startConsoleScene(overrides: Parameters<typeof startSignInScene>[0] = {}) {
  const scene = await startSignInScene(overrides)
  const { pinfold, org } = scene
  const { seed, operator } = pinfold
  const folder = await seed.group(org.uid, { name: 'payments', description: 'Takes the money' })
  const repo = await seed.repo(folder.uid, { name: 'ledger', description: 'Keeps the books' })
  const path = `${org.name}/payments/ledger`
  const pusher = await seed.member(org.uid, roleUids.push)
  const token = await pinfold.tokenFor(pusher.uid, { audience: new URL(pinfold.url).host })
  const client = registryClient(`http://127.0.0.1:${pinfold.port}`, token)

  const lastTuesday = new Date(Date.now() - 6 * day).toISOString()
  const digestThen = digestOf('what it was last Tuesday')
  const records = [
    { time: new Date(Date.now() - 20 * day).toISOString(), digest: digestOf('what it was first') },
    { time: new Date(Date.now() - 9 * day).toISOString(), digest: digestThen },
  ]
  await expectMade(
    operator.post('/control/v1/tagHistory:import', { repoUid: repo.uid, tags: [{ name: 'stable', records }] }),
  )
  await importTags(operator, (await seed.repo(folder.uid, { name: 'many' })).uid)
  const { older, digest, scriptBlob } = await pushImages(client, path)
  await operator.delete(`/registry/v2/tags/${await tagOf(operator, repo.uid, 'gone')}`)
  await client.ok(200, 'GET', `${path}/manifests/${digest}`)
  await pinfold.app.usage.flush()
  await runJob(pinfold.app, readImages)
  await runJob(pinfold.app, readImages)
  const { app } = pinfold
  await readSource(app, 'Alpine:v3.20', [recordAbout('CVE-2024-7777', 'Alpine:v3.20', 'zlib', '1.3.2-r0')])

  await seed.invite(org.uid, roleUids.editor, { email: 'guest@acme.example' })
  await seed.mapping(scene.idp.uid, roleUids.editor)
  const subscription = await seed.subscription(org.uid)
  // The server sends no requests to other machines.
  await pinfold.point(subscription.uid, 'https://127.0.0.1:1/hook')
  const { secret } = await expectMade(operator.post(`/events/v2/subscriptions/${subscription.uid}:rotateSecret`, {}))
  await expectMade(operator.post(`/events/v2/subscriptions/${subscription.uid}:sendTest`, {}))
  const scim = await expectMade(operator.post(`/iam/v2/identityProviders/${scene.idp.uid}:generateScimToken`, {}))
  const upstreamPassword = 'planted-password-of-an-upstream'
  await makeRules(operator, { org: org.uid, repo: repo.uid, digest: older, pusher: pusher.uid })
  await follow(operator, org.uid, (await seed.repo(folder.uid, { name: 'alpine' })).uid, upstreamPassword)
  await expectMade(operator.patch(`/registry/v2/repos/${repo.uid}/readme`, { content: readme }))
  const plan = await createDeletionPlan(pinfold, client, { folder: folder.uid, path: `${org.name}/payments/worker` })
  await expectMade(
    operator.post(`/registry/v2/repos/${folder.uid}`, { name: 'copy', syncConfig: { source: repo.uid } }),
  )
  await runJob(pinfold.app, backfillLedgers)
  await runJob(pinfold.app, sequenceLedgers)
  const advisory = await importAdvisory(operator, org.uid)
  const orgName = String(org.name)
  return {
    ...{ ...scene, folder, repo, path, orgName, pusher, lastTuesday, digestThen, older, digest, scriptBlob },
    ...{ advisory, plan, secrets: [clientSecret, String(secret), String(scim.token), upstreamPassword] },
  }
}

/** Secrets that must never appear on a page. */
export function secretsOf({ secrets }: ConsoleScene): readonly string[] {
  return secrets
}

/** Every screen by its name. `instead` replaces the organization, to test screens for which nothing is found. */
export function consoleScreens(scene: ConsoleScene, instead?: string): { name: string; path: string }[] {
  const { older, digest, pusher, advisory } = scene
  const org = instead ?? scene.orgName
  const repo = instead ?? scene.path
  return [
    { name: 'Home', path: '/ui/' },
    { name: 'Overview', path: `/ui/g/${org}` },
    { name: 'Search', path: `/ui/search?q=${instead ?? 'CVE-2024-7777'}` },
    { name: 'Search by name', path: `/ui/search?q=${instead ?? 'ledger'}` },
    { name: 'Package', path: `/ui/package?name=${instead ?? 'zlib'}` },
    { name: 'Setup', path: '/ui/setup' },
    { name: 'Organizations', path: '/ui/g/' },
    { name: 'Repositories', path: `/ui/g/${org}/~/repositories?open=payments` },
    { name: 'Group', path: `/ui/g/${org}/payments` },
    { name: 'Repository', path: `/ui/r/${repo}` },
    { name: 'Repository history', path: `/ui/r/${repo}?view=history` },
    { name: 'Many tags', path: `/ui/r/${instead ?? `${org}/payments/many`}` },
    { name: 'Pull commands', path: `/ui/r/${repo}?view=pull` },
    { name: 'Readme', path: `/ui/r/${repo}?view=readme` },
    { name: 'Repository settings', path: `/ui/r/${repo}?view=settings` },
    { name: 'Group settings', path: `/ui/g/${org}/payments/~/settings` },
    { name: 'Tag', path: `/ui/r/${repo}/~/tags/stable?at=${scene.lastTuesday}&age=1d` },
    { name: 'Image', path: `/ui/r/${repo}/~/digests/${digest}` },
    { name: 'Image layers', path: `/ui/r/${repo}/~/digests/${digest}?tab=layers` },
    { name: 'Image retention', path: `/ui/r/${repo}/~/digests/${digest}?tab=retention` },
    { name: 'Comparison', path: `/ui/r/${repo}/~/diff/${older}..${digest}` },
    { name: 'People', path: `/ui/g/${org}/~/members` },
    { name: 'Service accounts', path: `/ui/g/${org}/payments/~/members/service-accounts` },
    { name: 'Groups of the provider', path: `/ui/g/${org}/~/members/groups` },
    { name: 'Roles', path: `/ui/g/${org}/~/members/roles` },
    { name: 'Explain access', path: `/ui/g/${org}/~/why?identity=${pusher.uid}&capability=CAP_TAG_DELETE` },
    { name: 'Invitations and sign-in', path: `/ui/g/${org}/~/people` },
    { name: 'Keyless CI', path: `/ui/g/${org}/~/keyless` },
    { name: 'Retention', path: `/ui/g/${org}/payments/~/promises` },
    { name: 'Cooldown policies', path: `/ui/g/${org}/~/pulls?ended=yes` },
    { name: 'Admission policies', path: `/ui/g/${org}/payments/~/gates` },
    { name: 'Repository admission', path: `/ui/r/${repo}?view=gates` },
    { name: 'Accepted risks', path: `/ui/g/${org}/payments/~/risks` },
    { name: 'Repository risks', path: `/ui/r/${repo}?view=risks` },
    { name: 'Mirrors', path: `/ui/g/${org}/~/mirrors` },
    { name: 'Repository retention', path: `/ui/r/${repo}?view=promises` },
    { name: 'Repository cooldown', path: `/ui/r/${repo}?view=pulls` },
    { name: 'Repository mirror', path: `/ui/r/${instead ?? `${org}/payments/alpine`}?view=mirror` },
    { name: 'Deletion plan', path: `/ui/r/${instead ?? `${org}/payments/worker`}?view=promises&plan=${scene.plan}` },
    { name: 'Copy', path: `/ui/r/${instead ?? `${org}/payments/copy`}?view=mirror` },
    { name: 'Webhooks', path: `/ui/g/${org}/~/events` },
    { name: 'Tokens', path: `/ui/g/${org}/~/integrations/tokens` },
    { name: 'Audit log', path: `/ui/g/${org}/~/audit` },
    { name: 'Advisories', path: '/ui/advisories' },
    { name: 'Advisory', path: `/ui/advisories/${advisory}` },
    { name: 'Libraries', path: '/ui/libraries' },
    { name: 'Data sources', path: '/ui/sources' },
    { name: 'Account', path: '/ui/account' },
  ]
}

/** Creates two images with packages, tags that move between them, a tag that is deleted later, and a blob that is a script. */
async function pushImages(client: RegistryClient, path: string) {
  const first = apkLayer('alpine', '3.20.0', ['musl 1.2.5-r0', 'zlib 1.3.1-r0'])
  const second = apkLayer('alpine', '3.20.1', ['musl 1.2.5-r1', 'zlib 1.3.1-r0', 'curl 8.9.0-r0'])
  const older = (await pushLayers(client, path, [first], 'v1')).digest
  await pushLayers(client, path, [first], 'gone')
  const image = await pushLayers(client, path, [second], 'v2')
  const { digest } = image
  await pushSbom(client, path, image, '{"spdxVersion":"SPDX-2.3","packages":[]}')
  await pushLayers(client, path, [second], 'gone')
  await pushLayers(client, path, [second], 'stable')
  const script = await client.pushBlob(path, 'globalThis.wasRun = true')
  return { older, digest, scriptBlob: `/v2/${path}/blobs/${script.digest}` }
}

type Operator = { get(path: string): Promise<{ body: Json }> }

async function tagOf(operator: Operator, repo: string, name: string): Promise<string> {
  const { body } = await operator.get(`/registry/v2/tags?uidp.childrenOf=${repo}&name=${name}`)
  return body.tags[0].uid as string
}

async function expectMade(asked: Promise<{ status: number; body: Json; text: string }>): Promise<Json> {
  const answer = await asked
  if (answer.status !== 200) throw new Error(`the scene could not be made: ${answer.text}`)
  return answer.body
}

type Answer = Promise<{ status: number; body: Json; text: string }>
type Poster = Operator & { post(path: string, body: Json): Answer; patch(path: string, body: Json): Answer }

/** Creates more tags than fit on a page. */
async function importTags(operator: Poster, repo: string): Promise<void> {
  const time = new Date(Date.now() - 2 * day).toISOString()
  const tags = Array.from({ length: 450 }, (_, i) => {
    return { name: `build-${i}`, records: [{ time, digest: digestOf(`build ${i}`) }] }
  })
  await expectMade(operator.post('/control/v1/tagHistory:import', { repoUid: repo, tags }))
}

type Ruled = { org: string; repo: string; digest: string; pusher: string }

/** Creates one rule of each kind: in a group above the repository, in the repository, and expired ones. */
async function makeRules(operator: Poster, { org, repo, digest, pusher }: Ruled): Promise<void> {
  const reason = 'asked for by the auditors'
  await expectMade(
    operator.post(`/registry/v2/retentionRules/${org}`, {
      ...{ name: 'releases', tags: ['v*'], exceptTags: ['v*-rc*'], keepDaysAfter: 365, keepLast: 3, mode: 'ENFORCE' },
    }),
  )
  await expectMade(
    operator.post(`/registry/v2/retentionRules/${repo}`, { name: 'tried', forever: true, mode: 'DRY_RUN' }),
  )
  await expectMade(operator.post(`/registry/v2/tagRules/${repo}`, { name: 'prod', tags: ['prod'], movers: [pusher] }))
  await expectMade(operator.post(`/registry/v2/holds/${repo}`, { digest, reason }))
  await expectMade(
    operator.post(`/registry/v2/quarantined/${repo}:quarantine`, { digest: digestOf('something bad'), reason }),
  )
  const pulls = { name: 'clusters', belowGroup: org, minAge: '7d', mode: 'OBSERVE' }
  await expectMade(operator.post(`/registry/v2/pullRules/${org}`, pulls))
  const vulnerabilities = { leastSeverity: 'HIGH', onlyFixable: true, afterDays: 14 }
  await expectMade(operator.post(`/registry/v2/gates/${org}`, { name: 'no-fixable', vulnerabilities }))
  await expectMade(operator.post(`/registry/v2/gates/${repo}`, { name: 'old-enough', cooldown: { minAgeDays: 3 } }))
  const expireTime = new Date(Date.now() + 7 * day).toISOString()
  await expectMade(
    operator.post(`/registry/v2/riskAcceptances/${org}`, { vulnerability: 'CVE-2024-1', reason, expireTime }),
  )
  for (const [scope, kind] of [
    [org, 'ecdsa'],
    [repo, 'ed25519'],
  ] as const) {
    const publicKey = pemOf(keysOf[kind]!())
    const signer = { name: `the ${kind} key`, publicKey, reason, expireTime }
    await expectMade(operator.post(`/registry/v2/vexSigners/${scope}`, signer))
  }
  const exception = await expectMade(
    operator.post(`/registry/v2/pullRuleExceptions/${repo}`, { digest, reason, expireTime }),
  )
  await expectMade(operator.post(`/registry/v2/pullRuleExceptions/${exception.uid}:revoke`, {}))
  await expectMade(operator.post(`/registry/v2/pullRuleExceptions/${repo}`, { digest, reason, expireTime }))
}

/** Creates a mirror of a repository at a registry that never receives a request. */
async function follow(operator: Poster, org: string, repo: string, password: string): Promise<void> {
  const upstream = { name: 'hub', url: 'https://registry.example.com', username: 'somebody', password }
  const { uid } = await expectMade(operator.post(`/registry/v2/upstreams/${org}`, upstream))
  const body = { upstreamUid: uid, path: 'library/alpine', tags: ['3\\.[0-9]+'], interval: '1800s' }
  await expectMade(operator.post(`/registry/v2/repos/${repo}/follow`, body))
}

/** Creates a repository with a retention rule that deletes, a rule in dry run, and a plan for both. */
async function createDeletionPlan(
  { app, seed, operator }: Pinfold,
  client: RegistryClient,
  { folder, path }: { folder: string; path: string },
): Promise<string> {
  const repo = await seed.repo(folder, { name: 'worker' })
  for (const [tag, mode] of [
    ['nightly', 'ENFORCE'],
    ['weekly', 'DRY_RUN'],
  ] as const) {
    await expectMade(
      operator.post(`/registry/v2/retentionRules/${repo.uid}`, { name: tag, tags: [tag], keepLast: 1, mode }),
    )
    for (const _ of ['older', 'newer']) await client.pushImage(path, tag)
  }
  const plan = await expectMade(operator.post(`/registry/v2/retentionPlans/${repo.uid}`, {}))
  await runJob(app, sweepRetention)
  return plan.uid as string
}

async function importAdvisory(operator: Poster, org: string): Promise<string> {
  const advisory = {
    ...{
      advisoryId: 'CGA-2222-3333-4444',
      artifactName: 'zlib',
      artifactType: 'apk',
      componentName: 'zlib',
      author: 'somebody',
    },
    aliases: ['CVE-2024-7777'],
    events: [
      {
        ...{ createTime: new Date().toISOString(), author: 'somebody', reviewState: 'REVIEW_STATE_PENDING' },
        truePositiveDetermination: { note: '<img src=x onerror="globalThis.wasRun = true"> is only text' },
      },
    ],
  }
  const body = { parent: org, advisories: [{ origin: 'zlib', advisory }] }
  await expectMade(operator.post('/control/v1/advisories:import', body))
  const listed = await operator.get('/vulnerabilities/v2/advisories?pageSize=1')
  return listed.body.advisories[0].uid as string
}
