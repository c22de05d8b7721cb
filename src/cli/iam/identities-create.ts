// Commands that create identities. Options set the claims that tokens must have; shortcuts do this for common platforms.

import { type Answer, apiCommand } from '../framework/api-pages.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { usageError } from '../framework/cli-error.ts'
import type { Command, Commands, OptionSpec, Options, Terminal } from '../framework/command.ts'
import { oneFormats, outputOf } from '../framework/outputs.ts'
import { parseUserJson } from '../framework/user-files.ts'
import { bodyOf, type Field, optionOf, shownOne } from '../framework/verbs.ts'
import { parentOption } from './groups.ts'
import { claimFields, findRole, identities } from './resources.ts'

const nameArgument = { name: '<name>', summary: 'Name of the identity' }
const roleOption: OptionSpec = {
  flags: '--role <roles>',
  summary: 'Roles of the identity in its organization or folder, separated by commas: names or uids',
  repeat: true,
}
const common: readonly OptionSpec[] = [
  parentOption,
  { flags: '--description <text>', summary: 'Description' },
  roleOption,
  outputOf(oneFormats),
]

const staticFields: readonly Field[] = [
  {
    flags: '--issuer-keys <json>',
    summary: 'JSON Web Key Set of an issuer that the server cannot reach; needs --identity-issuer and --subject',
    member: 'staticKeys.issuerKeys',
  },
  {
    flags: '--expiration <day>',
    summary: 'Day on which the keys of --issuer-keys expire, at 00:00 UTC, such as 2026-12-31; at most one year ahead',
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
      summary: 'JSON file with the identity in the form of the API; options have priority',
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
  /** Claims or accounts of the platform's tokens that the identity accepts, in the form of the API. */
  relationship(options: Options): object
  /** Configuration for the platform that uses the identity. */
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
  details: `A repository name can get another owner later. To prevent access by the new owner, add --repository-id and --owner-id, which
"gh api repos/OWNER/NAME" prints.`,
  options: [
    { flags: '--repository <owner/name>', summary: 'GitHub repository', required: true },
    { flags: '--ref <ref>', summary: 'Branch or tag that jobs run for, or any; default: refs/heads/main' },
    { flags: '--environment <name>', summary: 'GitHub environment of the jobs, instead of --ref' },
    { flags: '--repository-id <number>', summary: 'Numeric ID of the repository' },
    { flags: '--owner-id <number>', summary: 'Numeric ID of the owner of the repository' },
    {
      flags: '--github-issuer <url>',
      summary: 'Token issuer of a GitHub Enterprise Server; default: the issuer of github.com',
    },
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
      // Newer GitHub subjects have `@` and a numeric id after the owner and the repository.
      subjectPattern: `repo:${literal(owner)}(@[0-9]+)?/${literal(name)}(@[0-9]+)?:${rest}`,
      ...(Object.keys(claims).length > 0 && { claims }),
    }
    return { claimMatch }
  },
  snippet: gitHubJob,
})

const gitlab = ofPlatform({
  options: [
    { flags: '--project <path>', summary: 'GitLab project, such as acme/team/app', required: true },
    { flags: '--ref <name>', summary: 'Branch or tag that jobs run for, or any; default: main' },
    { flags: '--ref-type <type>', summary: 'Kind of --ref; default: branch', choices: ['branch', 'tag'] },
    { flags: '--project-id <number>', summary: 'Numeric ID of the project, which never changes' },
    { flags: '--gitlab-url <url>', summary: 'URL of the GitLab server; default: https://gitlab.com' },
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
  details: 'To show the issuer of a cluster: kubectl get --raw /.well-known/openid-configuration',
  options: [
    { flags: '--cluster-issuer <url>', summary: 'Token issuer of the cluster', required: true },
    { flags: '--namespace <name>', summary: 'Namespace of the service account', required: true },
    { flags: '--service-account <name>', summary: 'Name of the service account; default: default' },
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
      { flags: '--account <number>', summary: 'AWS account, 12 digits', required: true },
      { flags: `--${member}-name <name>`, summary: `Name of the AWS ${member}`, required: true },
    ],
    relationship(options) {
      const [account, name] = [String(options.account), String(options[`${member}Name`])]
      if (!/^[0-9]{12}$/.test(account)) throw usageError('--account must be 12 digits')
      // The name of a session comes after the name of the assumed role.
      const arn =
        member === 'role'
          ? { arnPattern: `arn:aws[a-z-]*:sts::${literal(account)}:assumed-role/${literal(name)}/.*` }
          : { arn: `arn:aws:iam::${account}:user/${name}` }
      return { awsIdentity: { awsAccount: account, ...arn } }
    },
  })

const gcp = ofPlatform({
  details: `To show the ID: gcloud iam service-accounts describe EMAIL --format='value(uniqueId)'. The email address of a deleted
account can be used again, but its ID cannot.`,
  options: [{ flags: '--service-account-id <number>', summary: 'Unique ID of the service account', required: true }],
  relationship(options) {
    const subject = String(options.serviceAccountId)
    if (!/^[0-9]{1,32}$/.test(subject)) throw usageError('--service-account-id must be a number')
    return { claimMatch: { issuer: 'https://accounts.google.com', subject } }
  },
})

const azure = ofPlatform({
  details: `"az identity show" prints principalId and tenantId. Register an application in Azure that only this server uses.`,
  options: [
    { flags: '--tenant-id <id>', summary: 'ID of the Azure tenant', required: true },
    { flags: '--principal-id <id>', summary: 'Principal ID of the managed identity', required: true },
    {
      flags: '--application <audience>',
      summary:
        'Audience of the tokens: URI of the application, such as api://pinfold, or its ID with --token-version 2',
      required: true,
    },
    {
      flags: '--token-version <version>',
      summary: 'Version of the tokens of the application; default: 1',
      choices: ['1', '2'],
    },
  ],
  relationship(options) {
    const [tid, oid] = [String(options.tenantId), String(options.principalId)]
    for (const [flag, id] of Object.entries({ '--tenant-id': tid, '--principal-id': oid })) {
      if (!/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) {
        throw usageError(`${flag} must be a UUID such as 72f988bf-86f1-41af-91ab-2d7cd011db47`)
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

/** Creates the identity and its bindings. Prints the identity and the configuration for its platform. */
async function made(
  api: ApiReader,
  terminal: Terminal,
  options: Options,
  relationship: object,
  snippet?: (uid: string, api: string) => string,
): Promise<Answer> {
  const parent = await identities.parent(api, String(options.in))
  const names = ((options.role ?? []) as string[]).flatMap((given) => given.split(',')).filter(Boolean)
  const roles = await Promise.all(names.map(async (name) => findRole(api, name)))
  const description = options.description === undefined ? {} : { description: options.description }
  const body = { ...relationship, name: options.name, ...description }
  const identity = (await api.call('POST', `/iam/v2/identities/${parent}`, body)) as { uid: string; name: string }
  try {
    for (const roleUid of roles) {
      await api.call('POST', `/iam/v2/roleBindings/${parent}`, { identityUid: identity.uid, roleUid })
    }
  } catch (error) {
    await api.call('DELETE', `/iam/v2/identities/${identity.uid}`).catch(() => {
      terminal.say(
        `pinfold: the identity ${identity.uid} was created without its roles, and could not be deleted; to delete it: pinfold identities delete ${identity.uid}`,
      )
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

/** Merges required claims from the file and from options. If both have a claim, the option's value is used. */
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
    const identity = parseUserJson(text)
    if (identity !== null && typeof identity === 'object' && !Array.isArray(identity)) return identity
  } catch {
    // The code below throws the error.
  }
  throw wrong('is not a JSON object')
}

/** Regular expression that matches only this text. */
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
  - run: pinfold login && pinfold docker configure`
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
    - pinfold login && pinfold docker configure`
}

function kubernetesPod(uid: string, api: string): string {
  return `# in the spec of the pod; in the container: pinfold login && pinfold docker configure
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
