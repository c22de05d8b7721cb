// Commands that create identities: by the required claims of their tokens, with shortcuts for common platforms.
import { type Answer, apiCommand } from '../framework/api-pages.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { usageError } from '../framework/cli-error.ts'
import type { Command, Commands, OptionSpec, Options, Terminal } from '../framework/command.ts'
import { oneFormats, outputOf } from '../framework/outputs.ts'
import { bodyOf, type Field, optionOf, shownOne } from '../framework/verbs.ts'
import { parentOption } from './groups.ts'
import { claimFields, findRole, identities } from './resources.ts'

const nameArgument = { name: '<name>', summary: 'What it is called' }
const roleOption: OptionSpec = {
  flags: '--role <roles>',
  summary: 'Bind it to these roles in its group, with commas: names or uids',
  repeat: true,
}
const common: readonly OptionSpec[] = [
  parentOption,
  { flags: '--description <text>', summary: 'What it is for' },
  roleOption,
  outputOf(oneFormats),
]

const staticFields: readonly Field[] = [
  {
    flags: '--issuer-keys <json>',
    summary: 'A JSON Web Key Set, for an issuer that cannot be reached; with --identity-issuer and --subject',
    member: 'staticKeys.issuerKeys',
  },
  {
    flags: '--expiration <day>',
    summary: 'With --issuer-keys: until when, as 2026-12-31; a year at most',
    member: 'staticKeys.expirationTime',
    read: (_, day) => dayOf(day),
  },
]

const claims = apiCommand({
  arguments: [nameArgument],
  options: [
    ...[...claimFields, ...staticFields].map(({ required: _, ...field }) => optionOf(field)),
    {
      flags: '--filename <file>',
      summary: 'A file with the identity as JSON, as the API takes it; options win over it',
    },
    ...common,
  ],
  async run(api, options, terminal) {
    const written = options.filename === undefined ? {} : await readIdentity(String(options.filename))
    const body = await bodyOf(api, [...claimFields, ...staticFields], options)
    const relationship = body.staticKeys
      ? { staticKeys: { ...(body.claimMatch as object), ...(body.staticKeys as object) } }
      : body
    return made(api, terminal, options, merged(written, relationship))
  },
})

type Platform = Pick<Command, 'details' | 'options'> & {
  /** Relationship by which tokens of the platform become the identity, in the form of the API. */
  relationship(options: Options): object
  /** Lines for the configuration of the platform. */
  snippet?(uid: string, api: string): string
}

const ofPlatform = ({ relationship, snippet, options: own, ...command }: Platform): Command =>
  apiCommand({
    ...command,
    arguments: [nameArgument],
    options: [...own, ...common],
    check: relationship,
    run: (api, options, terminal) => made(api, terminal, options, relationship(options), snippet),
  })

const github = ofPlatform({
  details: `Names can change hands: with --repository-id and --owner-id, which gh api repos/OWNER/NAME prints, they cannot.`,
  options: [
    { flags: '--repository <owner/name>', summary: 'The repository at GitHub', required: true },
    { flags: '--ref <ref>', summary: 'Only this branch or tag: refs/heads/main unless given; any for every one' },
    { flags: '--environment <name>', summary: 'Only jobs of this environment, instead of a ref' },
    { flags: '--repository-id <number>', summary: 'The id of the repository' },
    { flags: '--owner-id <number>', summary: 'The id of its owner' },
    { flags: '--github-issuer <url>', summary: 'That of a GitHub Enterprise Server' },
  ],
  relationship(options) {
    const [, owner, name] = /^([\w.-]+)\/([\w.-]+)$/.exec(String(options.repository)) ?? []
    if (!owner || !name) throw usageError('--repository must be OWNER/NAME')
    const ref = String(options.ref ?? 'refs/heads/main')
    const rest = options.environment
      ? `environment:${literal(String(options.environment).replaceAll(':', '%3A'))}`
      : ref === 'any'
        ? '.*'
        : `ref:${literal(ref)}`
    const claims = {
      ...(options.repositoryId !== undefined && { repository_id: String(options.repositoryId) }),
      ...(options.ownerId !== undefined && { repository_owner_id: String(options.ownerId) }),
    }
    const claimMatch = {
      issuer: options.githubIssuer ?? 'https://token.actions.githubusercontent.com',
      // Newer subjects have the ids after the names.
      subjectPattern: `repo:${literal(owner)}(@[0-9]+)?/${literal(name)}(@[0-9]+)?:${rest}`,
      ...(Object.keys(claims).length > 0 && { claims }),
    }
    return { claimMatch }
  },
  snippet: gitHubJob,
})

const gitlab = ofPlatform({
  options: [
    { flags: '--project <path>', summary: 'The project at GitLab, such as acme/team/app', required: true },
    { flags: '--ref <name>', summary: 'Only this branch or tag: main unless given; any for every one' },
    { flags: '--ref-type <type>', summary: 'What --ref names: branch unless given', choices: ['branch', 'tag'] },
    { flags: '--project-id <number>', summary: 'The id of the project, which no other one gets' },
    { flags: '--gitlab-url <url>', summary: 'A GitLab of your own; https://gitlab.com unless given' },
  ],
  relationship(options) {
    const project = String(options.project)
    if (!/^[\w.-]+(?:\/[\w.-]+)+$/.test(project)) throw usageError('--project must be GROUP/NAME')
    const [ref, type] = [String(options.ref ?? 'main'), String(options.refType ?? 'branch')]
    const issuer = String(options.gitlabUrl ?? 'https://gitlab.com').replace(/\/$/, '')
    const subject =
      ref === 'any'
        ? { subjectPattern: `project_path:${literal(project)}:ref_type:${type}:ref:.*` }
        : { subject: `project_path:${project}:ref_type:${type}:ref:${ref}` }
    const claims = options.projectId === undefined ? {} : { claims: { project_id: String(options.projectId) } }
    return { claimMatch: { issuer, ...subject, ...claims } }
  },
  snippet: gitLabJob,
})

const kubernetes = ofPlatform({
  details: 'kubectl get --raw /.well-known/openid-configuration shows the issuer of a cluster.',
  options: [
    { flags: '--cluster-issuer <url>', summary: 'The issuer of the cluster', required: true },
    { flags: '--namespace <name>', summary: 'The namespace of the service account', required: true },
    { flags: '--service-account <name>', summary: 'The service account: default unless given' },
  ],
  relationship(options) {
    const subject = `system:serviceaccount:${options.namespace}:${options.serviceAccount ?? 'default'}`
    return { claimMatch: { issuer: options.clusterIssuer, subject } }
  },
  snippet: kubernetesPod,
})

const arns = (member: 'user' | 'role'): Command =>
  ofPlatform({
    options: [
      { flags: '--account <number>', summary: 'The account, 12 digits', required: true },
      { flags: `--${member}-name <name>`, summary: `The name of the ${member}`, required: true },
    ],
    relationship(options) {
      const [account, name] = [String(options.account), String(options[`${member}Name`])]
      if (!/^[0-9]{12}$/.test(account)) throw usageError('--account must be 12 digits')
      // A session of a role has a name of its own after that of the role.
      const arn =
        member === 'role'
          ? { arnPattern: `arn:aws[a-z-]*:sts::${literal(account)}:assumed-role/${literal(name)}/.*` }
          : { arn: `arn:aws:iam::${account}:user/${name}` }
      return { awsIdentity: { awsAccount: account, ...arn } }
    },
  })

const gcp = ofPlatform({
  details: `The id is that of gcloud iam service-accounts describe ADDRESS --format='value(uniqueId)': an address can be given out
again, the id cannot.`,
  options: [{ flags: '--service-account-id <number>', summary: 'The unique id', required: true }],
  relationship(options) {
    const subject = String(options.serviceAccountId)
    if (!/^[0-9]{1,32}$/.test(subject)) throw usageError('--service-account-id must be a number')
    return { claimMatch: { issuer: 'https://accounts.google.com', subject } }
  },
})

const azure = ofPlatform({
  details: `az identity show prints principalId and tenantId. The application is one that is registered for this server alone.`,
  options: [
    { flags: '--tenant-id <id>', summary: 'The tenant', required: true },
    { flags: '--principal-id <id>', summary: 'The principal of the managed identity', required: true },
    {
      flags: '--application <audience>',
      summary: 'The audience of its tokens: the URI of the application, such as api://pinfold, or its id in version 2',
      required: true,
    },
    {
      flags: '--token-version <version>',
      summary: 'What the application asks for: 1 unless given',
      choices: ['1', '2'],
    },
  ],
  relationship(options) {
    const [tid, oid] = [String(options.tenantId), String(options.principalId)]
    for (const [flag, id] of Object.entries({ '--tenant-id': tid, '--principal-id': oid })) {
      if (!/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) {
        throw usageError(`${flag} must be an id such as 72f988bf-86f1-41af-91ab-2d7cd011db47`)
      }
    }
    const newer = options.tokenVersion === '2'
    const issuer = newer ? `https://login.microsoftonline.com/${tid}/v2.0` : `https://sts.windows.net/${tid}/`
    const claimMatch = { issuer, subject: oid, audience: options.application, claims: { oid, tid } }
    return { claimMatch }
  },
})

export const identitiesCreate: Commands = {
  claims,
  github,
  gitlab,
  kubernetes,
  'aws role': arns('role'),
  'aws user': arns('user'),
  gcp,
  azure,
}

/** Creates the identity and its bindings, and prints it with the configuration for its platform. */
async function made(
  api: ApiReader,
  terminal: Terminal,
  options: Options,
  relationship: object,
  snippet?: (uid: string, api: string) => string,
): Promise<Answer> {
  const parent = await identities.parent(api, String(options.parent))
  const names = ((options.role ?? []) as string[]).flatMap((given) => given.split(',')).filter(Boolean)
  const roles = await Promise.all(names.map((name) => findRole(api, name)))
  const description = options.description === undefined ? {} : { description: options.description }
  const body = { ...relationship, name: options.name, ...description }
  const identity = (await api.call('POST', `/iam/v2/identities/${parent}`, body)) as { uid: string; name: string }
  try {
    for (const roleUid of roles) {
      await api.call('POST', `/iam/v2/roleBindings/${parent}`, { identityUid: identity.uid, roleUid })
    }
  } catch (error) {
    await api.call('DELETE', `/iam/v2/identities/${identity.uid}`).catch(() => {
      terminal.say(`pinfold: the identity ${identity.uid} was made, but could not be bound or deleted`)
    })
    throw error
  }
  const shown = await shownOne(api, identities, identity)
  const forPeople = options.output === undefined || options.output === 'table' || options.output === 'wide'
  if (!snippet || !forPeople) return shown
  return {
    print(to, format) {
      shown.print!(to, format)
      for (const line of ['', ...snippet(identity.uid, api.session.api).split('\n')]) to.print(line)
    },
  }
}

/** Merges claims member by member; options have priority. */
function merged(written: object, given: object): object {
  const all: Record<string, unknown> = { ...written }
  for (const [name, value] of Object.entries(given)) all[name] = { ...(all[name] as object | undefined), ...value }
  return all
}

async function readIdentity(file: string): Promise<object> {
  const { readFile } = await import('node:fs/promises')
  const wrong = (why: string) => usageError(`--filename: ${file} ${why}`)
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw wrong(`cannot be read: ${error.code}`)
  })
  try {
    const identity: unknown = JSON.parse(text)
    if (identity !== null && typeof identity === 'object' && !Array.isArray(identity)) return identity
  } catch {
    // The error is thrown below.
  }
  throw wrong('holds no JSON object')
}

/** A text as a regular expression that matches nothing else. */
function literal(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

function dayOf(day: string): string {
  if (/^\d{4}-\d{2}-\d{2}$/.test(day)) return `${day}T00:00:00Z`
  throw usageError('--expiration must be a day such as 2026-12-31')
}

function gitHubJob(uid: string, api: string): string {
  return `# in .github/workflows, with pinfold on the PATH of the runner
permissions:
  contents: read
  id-token: write
env:
  PINFOLD_API: ${api}
  PINFOLD_IDENTITY: ${uid}
steps:
  - run: pinfold auth login && pinfold auth configure-docker`
}

function gitLabJob(uid: string, api: string): string {
  return `# in .gitlab-ci.yml, with pinfold on the PATH of the runner
release:
  id_tokens:
    PINFOLD_ID_TOKEN:
      aud: ${new URL(api).host}
  variables:
    PINFOLD_API: ${api}
    PINFOLD_IDENTITY: ${uid}
  script:
    - pinfold auth login && pinfold auth configure-docker`
}

function kubernetesPod(uid: string, api: string): string {
  return `# in the spec of the pod; in the container: pinfold auth login && pinfold auth configure-docker
containers:
  - name: app
    env:
      - { name: PINFOLD_API, value: '${api}' }
      - { name: PINFOLD_IDENTITY, value: '${uid}' }
    volumeMounts:
      - { name: pinfold-token, mountPath: /var/run/secrets/tokens, readOnly: true }
volumes:
  - name: pinfold-token
    projected:
      sources:
        - serviceAccountToken: { audience: '${new URL(api).host}', expirationSeconds: 3600, path: pinfold }`
}
