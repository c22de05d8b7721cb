// Policies, holds, webhooks, mirrors and other settings of the demo organization.
import type { DemoClient } from './client.ts'
import type { DemoPeople } from './people.ts'

/** Uids of what the demo has created. Repositories have the key `folder/name`. */
export type DemoUids = {
  organization: string
  groups: ReadonlyMap<string, string>
  repos: ReadonlyMap<string, string>
  identities: ReadonlyMap<string, string>
}

const day = 86_400_000
const inDays = (days: number): string => new Date(Date.now() + days * day).toISOString()

/** Adds policies of each kind, an exemption, a hold and an accepted risk. `oldest` has the first build of each repository. */
export async function addRules(
  { ada, grace }: DemoPeople,
  { organization, groups, repos, identities }: DemoUids,
  oldest: ReadonlyMap<string, string>,
): Promise<void> {
  const [payments, edge, web] = [groups.get('payments')!, groups.get('edge')!, groups.get('web')!]
  const [jdk, php, python] = [repos.get('payments/jdk')!, repos.get('payments/php')!, repos.get('payments/python')!]
  const { client } = ada
  await client.post(`/registry/v2/retentionRules/${organization}`, {
    ...{ name: 'releases', tags: ['*-*'], keepDaysAfter: 365, keepLast: 5, mode: 'ENFORCE' },
  })
  await client.post(`/registry/v2/retentionRules/${payments}`, {
    ...{ name: 'production images', tags: ['stable'], keepDaysAfter: 730, mode: 'ENFORCE' },
  })
  await grace.client.post(`/registry/v2/retentionRules/${web}`, {
    ...{ name: 'candidates', tags: ['candidate'], keepDaysAfter: 14, keepLast: 3, mode: 'DRY_RUN' },
  })
  const releases = { name: 'release tags', tags: ['*-*'], immutable: true }
  await client.post(`/registry/v2/tagRules/${payments}`, releases)
  const movers = [identities.get('ledger releases'), grace.uid]
  await grace.client.post(`/registry/v2/tagRules/${jdk}`, { name: 'stable', tags: ['stable'], movers })
  await client.post(`/registry/v2/gates/${organization}`, {
    ...{ name: 'no-critical', mode: 'DRY_RUN', vulnerabilities: { leastSeverity: 'CRITICAL' } },
  })
  await client.post(`/registry/v2/gates/${edge}`, {
    ...{ name: 'no-exploited', mode: 'ENFORCE', vulnerabilities: { onlyExploited: true } },
  })
  await grace.client.post(`/registry/v2/gates/${payments}`, {
    ...{
      name: 'no-fixable-high',
      mode: 'DRY_RUN',
      vulnerabilities: { leastSeverity: 'HIGH', onlyFixable: true, afterDays: 14 },
    },
  })
  const cooldown = {
    name: 'clusters wait a day',
    belowGroup: organization,
    tags: ['candidate'],
    minAge: '1d',
    mode: 'OBSERVE',
  }
  await client.post(`/registry/v2/pullRules/${organization}`, cooldown)

  const digest = oldest.get('payments/php')!
  const exemption = 'The old payment page runs until the new one replaces it'
  await grace.client.post(`/registry/v2/gateExceptions/${php}`, { digest, reason: exemption, expireTime: inDays(30) })
  await client.post(`/registry/v2/riskAcceptances/${php}`, {
    ...{ vulnerability: 'CVE-2024-8926', reason: 'The image does not use CGI', expireTime: inDays(60) },
  })
  const hold = { digest: oldest.get('payments/jdk'), reason: 'Audit of the third quarter' }
  await client.post(`/registry/v2/holds/${jdk}`, hold)
  await client.post(`/registry/v2/quarantined/${python}:quarantine`, {
    ...{ digest: oldest.get('payments/python'), reason: 'xz 5.6.1 contains malicious code (CVE-2024-3094)' },
  })
}

/** Adds webhooks to the second server, mirrors of its registry, tokens, invitations and other settings. */
export async function addIntegrations(
  operator: DemoClient,
  { ada, grace, katherine }: DemoPeople,
  { organization, groups, repos }: DemoUids,
  peer: string,
): Promise<void> {
  const { client } = ada
  for (const [group, path] of [
    [organization, '/webhook'],
    [groups.get('web')!, '/broken'],
  ]) {
    const { uid } = await client.post(`/events/v2/subscriptions/${group}`, { sink: `${peer}${path}` })
    await client.post(`/events/v2/subscriptions/${uid}:sendTest`)
  }
  const upstream = { name: 'demo-registry', url: peer, requestsPerSecond: 20 }
  const { uid: upstreamUid } = await client.post(`/registry/v2/upstreams/${organization}`, upstream)
  for (const [repo, mode] of [
    ['alpine', 'MODE_FULL'],
    ['nginx', 'MODE_ON_DEMAND'],
    ['node', 'MODE_FULL'],
    ['postgres', 'MODE_FULL'],
  ]) {
    const follow = { upstreamUid, path: `library/${repo}`, mode, interval: '3600s' }
    await client.post(`/registry/v2/repos/${repos.get(`mirrors/${repo}`)}/follow`, follow)
  }
  const roles = await operator.get('/iam/v2/roles?uidp.in_root=true&page_size=200')
  const viewer = roles.roles.find(({ name }) => name === 'viewer')!.uid
  for (const email of ['dorothy@acme.example', 'margaret@partner.example']) {
    await grace.client.post(`/iam/v2/groupInvites/${organization}`, { roleUid: viewer, email, ttl: '604800s' })
  }
  await client.post(`/control/v1/pushTokens/${groups.get('payments')}`, { name: 'build server', push: true })
  await katherine.client.post(`/control/v1/pushTokens/${groups.get('web')}`, { name: 'laptop', push: false })
  await client.post(`/control/v1/emailDomains/${organization}`, { domain: 'acme.example' })
  const limits = [
    { name: 'bytes', limit: String(100 * 2 ** 20) },
    { name: 'repositories', limit: '200' },
  ]
  await operator.post('/control/v1/quotas:set', { organization, limits })
  for (const [repo, content] of Object.entries(readmes)) {
    await operator.patch(`/registry/v2/repos/${repos.get(repo)}/readme`, { content })
  }
  await client.post(`/registry/v2/retentionPlans/${repos.get('web/node')}`)
}

const readmes: Readonly<Record<string, string>> = {
  'payments/jdk': `# jdk

Runs the ledger. Deployments use the tag \`stable\`, which follows each build after four days.

- Builds: GitLab project *acme/payments/ledger*, weekly
- On call: **payments**
`,
  'edge/nginx': `# nginx

The proxy in front of the shop, with our headers and log format.
`,
}
