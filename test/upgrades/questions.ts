// The questions that are put to a server when it is recorded, made from what is there.
import type { Client, Json } from '../support/pinfold.ts'
import type { RegistryClient } from '../support/registry.ts'
import type { Questions } from './ask.ts'
import type { People } from './scene.ts'

const named = ['name', 'name desc', 'created_at', 'updated_at desc', 'uid']
const timed = ['created_at desc', 'updated_at', 'uid desc']

/** Lists that can be limited to a scope, each with its orders. */
const lists: Record<string, readonly string[]> = {
  '/iam/v2/groups': named,
  '/iam/v2/identities': named,
  '/iam/v2/roles': named,
  '/iam/v2/roleBindings': timed,
  '/iam/v2/identityProviders': named,
  '/iam/v2/externalGroupRoleMappings': timed,
  '/iam/v2/groupInvites': timed,
  '/iam/v2/accountAssociations': named,
  '/registry/v2/repos': named,
  '/registry/v2/tags': named,
  '/vulnerabilities/v2/advisories': ['advisory_id', 'created_at desc'],
  '/events/v2/subscriptions': timed,
  '/events/v2/audit': ['created_at', 'created_at desc'],
}

/** Names for the uids of groups, repos and callers, and for all digests in `text`. */
export async function namesOf(api: Client, people: People, text: string): Promise<Record<string, string>> {
  const { groups } = (await api.get('/iam/v2/groups?page_size=200')).body
  const { repos } = (await api.get('/registry/v2/repos?page_size=200')).body
  const scopes = [...groups, ...repos].map(({ uid, name }: Json) => [`${pathOf(groups, uid)}${name}`, uid])
  const digests = new Set(text.match(/sha256:[0-9a-f]{64}/g))
  const shortened = [...digests].map((digest) => [digest.slice(0, 'sha256:'.length + 8), digest])
  return Object.fromEntries([...scopes, ...Object.entries(people.callers), ...shortened])
}

/** Requests to send to a server, by section. Their paths are found through the lists of the API and the manifests of the registry. */
export async function questionsOf(api: Client, registry: RegistryClient, people: People): Promise<Questions> {
  const all = async (path: string, query = ''): Promise<Json[]> => {
    const answer = await api.get(`${path}?page_size=200${query}`)
    if (answer.status !== 200) throw new Error(`${path} answered ${answer.text}`)
    return Object.values(answer.body).find(Array.isArray) ?? []
  }
  const groups = await all('/iam/v2/groups')
  const group = (name: string): string => groups.find((one) => one.name === name)!.uid
  const repos = await all('/registry/v2/repos')
  const paths = new Map(repos.map(({ uid, name }) => [uid as string, `${pathOf(groups, uid)}${name}`]))
  const repo = (path: string): string => [...paths].find(([, known]) => known === path)![0]
  const tags = await all('/registry/v2/tags', '&include_referrers=true')
  const subscriptions = await all('/events/v2/subscriptions')

  return {
    resources: [...(await everyResource(all)), ...(await described(all, group, repo, tags))],
    lists: [
      ...listsAt([group('acme'), group('payments'), repo('acme/platform/edge/nginx')]),
      ...['person', 'rover', 'auditor', 'stranger'].flatMap((caller) =>
        Object.keys(lists).map((path) => `${caller} GET ${path}?page_size=200`),
      ),
      ...filteredLists(people, group('acme'), tags),
    ],
    history: historyOf(group('payments'), repos, tags, paths, subscriptions, await deliveriesOf(all, subscriptions)),
    events: ['operator GET /events/v2/stream?after=0', `owner GET /events/v2/stream?after=0&group=${group('web')}`],
    registry: [`pusher GET ${people.upload}`, ...(await registryOf(all, registry, repos, tags, paths))],
    rights: rightsOf(group, repo, people),
    tokens: tokensOf(people),
  }
}

function pathOf(groups: readonly Json[], uid: string): string {
  const above = groups.filter((one) => uid.startsWith(`${one.uid}/`)).sort((a, b) => a.uid.length - b.uid.length)
  return above.map(({ name }) => `${name}/`).join('')
}

type All = (path: string, query?: string) => Promise<Json[]>

/** One question for each resource; the built-in roles, which belong to the program, only by name in the lists. */
async function everyResource(all: All): Promise<string[]> {
  const questions: string[] = []
  for (const path of Object.keys(lists).filter((one) => one !== '/events/v2/audit')) {
    const found = await all(path)
    const kept = path === '/iam/v2/roles' ? found.filter(({ uid }) => uid.includes('/')) : found
    // Advisories have texts of somebody else; a few are enough.
    const some = path.includes('advisories') ? kept.slice(0, 8) : kept
    questions.push(...some.map(({ uid }) => `operator GET ${path}/${uid}`))
  }
  return questions
}

/** Facts about a few resources through methods of their own. */
async function described(
  all: All,
  group: (name: string) => string,
  repo: (path: string) => string,
  tags: readonly Json[],
): Promise<string[]> {
  const [python] = await all('/libraries/v2/artifacts', '&ecosystems=ECOSYSTEM_PYTHON&query=flask')
  const alpine = repo('acme/platform/bases/alpine-base')
  const bases = repo('acme/platform/bases/glibc-dynamic')
  const digestOf = (uid: string, tag: string): string =>
    tags.find((one) => one.uid.startsWith(`${uid}/`) && one.name === tag)!.digest
  const nested = repo('acme/platform/bases/nested')
  const subject = 'subject=person-jane&issuer=http://127.0.0.1:27611'
  return [
    `operator GET /registry/v2/repos/${repo('acme/payments/jdk')}/readme`,
    `operator GET /registry/v2/repos/${bases}/digests/${digestOf(bases, 'latest')}/architectures`,
    `operator GET /registry/v2/repos/${bases}/digests/${digestOf(bases, 'latest')}/size?architecture=arm64`,
    ...['architectures', 'size'].map(
      (what) => `operator GET /registry/v2/repos/${nested}/digests/${digestOf(nested, 'latest')}/${what}`,
    ),
    `operator GET /iam/v2/quotas/${group('acme')}`,
    `operator GET /registry/v1/repos/${repo('acme/data/copied')}:syncstatus`,
    `operator GET /registry/v1/repocountbysource/${repo('acme/web/go')}`,
    `operator GET /iam/v2/terms/${group('acme')}`,
    `operator GET /iam/v2/identities:lookupIdentity?${subject}`,
    `operator GET /libraries/v2/artifacts/${encodeURIComponent(python!.uid)}/versions`,
    'operator GET /libraries/v2/artifacts/count?ecosystems=ECOSYSTEM_PYTHON',
    'operator GET /libraries/v2/artifacts?ecosystems=ECOSYSTEM_PYTHON&query=flask',
    'operator GET /advisory/v2/metadata?page_size=1',
    'operator GET /advisory/v2/documents?id=zlib',
    `operator GET /registry/v2/tags?uidp.children_of=${alpine}`,
    'operator GET /advisory/v2/images/resolvedVulns?imageRefs=acme/platform/bases/alpine-base:3.10&startTime=2026-01-01T00:00:00Z&endTime=2026-01-08T00:00:00Z',
  ]
}

function listsAt(scopes: readonly string[]): string[] {
  const [org, folder, repo] = scopes
  return Object.entries(lists).flatMap(([path, orders]) => [
    ...orders.map((order) => `operator GET ${path}?order_by=${encodeURIComponent(order)}&page_size=7`),
    `operator GET ${path}?uidp.in_root=true`,
    `operator GET ${path}?uidp.descendants_of=${org}&order_by=${encodeURIComponent(orders[0]!)}`,
    `operator GET ${path}?uidp.children_of=${folder}&skip=1`,
    `operator GET ${path}?uidp.ancestors_of=${repo}`,
  ])
}

function filteredLists({ callers }: People, org: string, tags: readonly Json[]): string[] {
  return [
    'operator GET /registry/v2/repos?name=python',
    `operator GET /iam/v2/roleBindings?identity=${callers.rover}`,
    `operator GET /iam/v2/roleBindings?group=${org}`,
    'operator GET /iam/v2/identities?relationship_type=RELATIONSHIP_TYPE_STATIC',
    'operator GET /registry/v2/tags?include_referrers=true',
    `operator GET /registry/v2/tags?digest=${tags[0]!.digest}`,
    'operator GET /vulnerabilities/v2/advisories?component_names=git',
    'operator GET /vulnerabilities/v2/advisories?artifact_names=git&page_size=3',
    'operator GET /libraries/v2/artifacts?ecosystems=ECOSYSTEM_PYTHON&order_by=name',
    `operator GET /events/v2/audit?actor=${callers.owner}`,
    `operator GET /events/v2/audit?uidp.descendants_of=${org}&type=dev.pinfold.api.iam.rolebindings.created.v1`,
  ]
}

async function deliveriesOf(all: All, subscriptions: readonly Json[]): Promise<Json[]> {
  return (await Promise.all(subscriptions.map(({ uid }) => all(`/events/v2/subscriptions/${uid}/deliveries`)))).flat()
}

/** Tag history through its three interfaces, the audit log, and the results of deliveries. */
function historyOf(
  payments: string,
  repos: readonly Json[],
  tags: readonly Json[],
  paths: ReadonlyMap<string, string>,
  subscriptions: readonly Json[],
  deliveries: readonly Json[],
): string[] {
  const names = (repo: string): string[] => {
    const there = tags.filter(({ uid }) => uid.startsWith(`${repo}/`)).map(({ name }) => name as string)
    // Tags that were deleted for good.
    const gone = { 'acme/platform/edge/nginx': ['1.26'], 'acme/web/go': ['gone'] }[paths.get(repo)!] ?? []
    return [...new Set([...there, ...gone])]
  }
  return [
    ...repos.flatMap(({ uid }) =>
      names(uid).flatMap((tag) => [
        `operator GET /registry/v2/repos/${uid}/tagHistory?tag=${tag}`,
        ...(tag === 'latest' ? [`puller GET /v2/${paths.get(uid)}/_svc/history/${tag}`] : []),
        `operator GET /v2/${paths.get(uid)}/_svc/history/${tag}`,
        `operator GET /v2/${paths.get(uid)}/_oci/tag-history/${tag}`,
      ]),
    ),
    ...tags.map(({ uid, digest }) => {
      return `operator GET /registry/v2/repos/${uid.slice(0, uid.lastIndexOf('/'))}/tagHistory?digest=${digest}`
    }),
    `operator GET /events/v2/audit?uidp.children_of=${payments}`,
    ...subscriptions.map(({ uid }) => `operator GET /events/v2/subscriptions/${uid}/settings`),
    ...subscriptions.map(({ uid }) => `operator GET /events/v2/subscriptions/${uid}/deliveries?page_size=200`),
    ...deliveries
      .filter(({ attemptCount }) => attemptCount > 0)
      .slice(0, 4)
      .map(({ uid }) => `operator GET /events/v2/deliveries/${uid}`),
  ]
}

/** Tags, manifests by tag and digest, everything that they need, and what refers to them. */
async function registryOf(
  all: All,
  registry: RegistryClient,
  repos: readonly Json[],
  tags: readonly Json[],
  paths: ReadonlyMap<string, string>,
): Promise<string[]> {
  const questions = new Set<string>(['anonymous GET /v2/', 'operator GET /v2/'])
  for (const { uid } of repos) {
    const path = `/v2/${paths.get(uid)}`
    const there = tags.filter((tag) => tag.uid.startsWith(`${uid}/`))
    questions.add(`operator GET ${path}/tags/list`)
    for (const { name, digest } of there) {
      questions.add(`operator GET ${path}/manifests/${name}`).add(`operator HEAD ${path}/manifests/${digest}`)
      questions.add(`operator GET ${path}/referrers/${digest}`)
      const history = await all(`/registry/v2/repos/${uid}/tagHistory`, `&tag=${name}`)
      for (const record of history) {
        questions.add(`operator GET ${path}/manifests/${record.digest}`)
        const { config, layers = [] } = (await registry.call('GET', `${path}/manifests/${record.digest}`)).body
        for (const blob of [config ?? [], layers].flat()) questions.add(`operator GET ${path}/blobs/${blob.digest}`)
      }
    }
  }
  for (const caller of ['anonymous', 'puller', 'person', 'stranger']) {
    for (const path of ['acme/platform/edge/nginx', 'acme/payments/jdk', 'public/static', 'acme/data/copied']) {
      questions.add(`${caller} GET /v2/${path}/tags/list`)
    }
  }
  return [...questions]
}

/** Methods that change nothing: they name what is not there, or say nothing of what they need. */
function rightsOf(group: (name: string) => string, repo: (path: string) => string, { callers }: People): string[] {
  const nowhere = (uid: string) => `${uid}/0000000000000000`
  const at = ['acme', 'payments', 'bases', 'web', 'public'].map(group)
  const kinds = ['groups', 'identities', 'roles', 'roleBindings', 'groupInvites', 'accountAssociations']
  return [
    ...at.flatMap((uid) => [
      `GET /iam/v2/groups/${uid}`,
      ...kinds.map((kind) => `POST /iam/v2/${kind}/${uid}`),
      ...kinds.map((kind) => `DELETE /iam/v2/${kind}/${nowhere(uid)}`),
      `POST /registry/v2/repos/${uid}`,
      `DELETE /registry/v2/repos/${nowhere(uid)}`,
      `POST /events/v2/subscriptions/${uid}`,
      `GET /events/v2/audit?uidp.descendants_of=${uid}`,
      `GET /iam/v2/terms/${uid}`,
    ]),
    ...['acme/payments/jdk', 'acme/platform/edge/nginx', 'acme/web/go'].flatMap((path) => [
      `GET /registry/v2/repos/${repo(path)}`,
      `POST /registry/v2/tags/${repo(path)}`,
      `DELETE /registry/v2/tags/${nowhere(repo(path))}`,
      `GET /registry/v2/repos/${repo(path)}/tagHistory?tag=none`,
      `GET /v2/${path}/tags/list`,
      `PUT /v2/${path}/manifests/none`,
      `DELETE /v2/${path}/manifests/none`,
      `GET /v2/${path}/_svc/history/none`,
    ]),
    `POST /iam/v2/identityProviders/${group('acme')}`,
    `GET /iam/v2/identities/${callers.person}`,
    `GET /iam/v2/identities/${callers.rover}`,
    'POST /iam/v2/groups/',
    'POST /control/v1/tagHistory:import',
  ]
}

function tokensOf({ callers }: People): string[] {
  const scopes = ['acme/payments/jdk', 'acme/platform/edge/nginx', 'public/static']
    .map((path) => `scope=repository:${path}:pull,push,delete`)
    .join('&')
  return [
    ...['operator', ...Object.keys(callers)].map((caller) => `${caller} GET /auth/v1/ok`),
    ...['operator', ...Object.keys(callers), 'anonymous'].map((caller) => `${caller} GET /token?service=x&${scopes}`),
    'anonymous GET /token?service=x&scope=repository:public/static:pull',
  ]
}
