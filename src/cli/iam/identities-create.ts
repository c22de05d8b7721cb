// New identities: by what their tokens must say, and shortcuts for the platforms that most people use.
import { apiReader, callerOptions } from '../shape/api-pages.ts'
import type { ApiReader } from '../shape/api-reader.ts'
import { CliError, type Command, type Commands, exitCodes, type OptionSpec, type Options } from '../shape/command.ts'
import { oneFormats, outputOf, printOne } from '../shape/outputs.ts'
import { bodyOf, type Field, mentioned } from '../shape/verbs.ts'
import { parentOption } from './groups.ts'
import { claimFields, findRole, identities } from './resources.ts'
import { gitHubJob, gitLabJob, kubernetesPod } from './snippets.ts'

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
  ...callerOptions,
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

const claims: Command = {
  arguments: [nameArgument],
  options: [
    ...[...claimFields, ...staticFields].map(optionOf),
    {
      flags: '--filename <file>',
      summary: 'A file with the identity as JSON, as the API takes it; options win over it',
    },
    ...common,
  ],
  async run(terminal, options) {
    const written = options.filename === undefined ? {} : await readIdentity(String(options.filename))
    const api = await apiReader(terminal, options)
    const body = await bodyOf(api, [...claimFields, ...staticFields], options)
    const relationship = body.staticKeys
      ? { staticKeys: { ...(body.claimMatch as object), ...(body.staticKeys as object) } }
      : body
    return made(api, terminal, options, merged(written, relationship))
  },
}

const github: Command = {
  details: `Names can change hands: with --repository-id and --owner-id, which gh api repos/OWNER/NAME prints, they cannot.`,
  arguments: [nameArgument],
  options: [
    { flags: '--repository <owner/name>', summary: 'The repository at GitHub', required: true },
    { flags: '--ref <ref>', summary: 'Only this branch or tag: refs/heads/main unless given; any for every one' },
    { flags: '--environment <name>', summary: 'Only jobs of this environment, instead of a ref' },
    { flags: '--repository-id <number>', summary: 'The id of the repository' },
    { flags: '--owner-id <number>', summary: 'The id of its owner' },
    { flags: '--github-issuer <url>', summary: 'That of a GitHub Enterprise Server' },
    ...common,
  ],
  async run(terminal, options) {
    const [, owner, name] = /^([\w.-]+)\/([\w.-]+)$/.exec(String(options.repository)) ?? []
    if (!owner || !name) throw new CliError(exitCodes.usage, '--repository must be OWNER/NAME')
    const api = await apiReader(terminal, options)
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
    return made(api, terminal, options, { claimMatch }, gitHubJob)
  },
}

const gitlab: Command = {
  arguments: [nameArgument],
  options: [
    { flags: '--project <path>', summary: 'The project at GitLab, such as acme/team/app', required: true },
    { flags: '--ref <name>', summary: 'Only this branch or tag: main unless given; any for every one' },
    { flags: '--ref-type <type>', summary: 'What --ref names: branch unless given', choices: ['branch', 'tag'] },
    { flags: '--project-id <number>', summary: 'The id of the project, which no other one gets' },
    { flags: '--gitlab-url <url>', summary: 'A GitLab of your own; https://gitlab.com unless given' },
    ...common,
  ],
  async run(terminal, options) {
    const project = String(options.project)
    if (!/^[\w.-]+(?:\/[\w.-]+)+$/.test(project)) throw new CliError(exitCodes.usage, '--project must be GROUP/NAME')
    const api = await apiReader(terminal, options)
    const [ref, type] = [String(options.ref ?? 'main'), String(options.refType ?? 'branch')]
    const issuer = String(options.gitlabUrl ?? 'https://gitlab.com').replace(/\/$/, '')
    const subject =
      ref === 'any'
        ? { subjectPattern: `project_path:${literal(project)}:ref_type:${type}:ref:.*` }
        : { subject: `project_path:${project}:ref_type:${type}:ref:${ref}` }
    const claims = options.projectId === undefined ? {} : { claims: { project_id: String(options.projectId) } }
    return made(api, terminal, options, { claimMatch: { issuer, ...subject, ...claims } }, gitLabJob)
  },
}

const kubernetes: Command = {
  details: 'kubectl get --raw /.well-known/openid-configuration shows the issuer of a cluster.',
  arguments: [nameArgument],
  options: [
    { flags: '--cluster-issuer <url>', summary: 'The issuer of the cluster', required: true },
    { flags: '--namespace <name>', summary: 'The namespace of the service account', required: true },
    { flags: '--service-account <name>', summary: 'The service account: default unless given' },
    ...common,
  ],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const subject = `system:serviceaccount:${options.namespace}:${options.serviceAccount ?? 'default'}`
    return made(api, terminal, options, { claimMatch: { issuer: options.clusterIssuer, subject } }, kubernetesPod)
  },
}

const arns = (member: 'user' | 'role'): Command => ({
  arguments: [nameArgument],
  options: [
    { flags: '--account <number>', summary: 'The account, 12 digits', required: true },
    { flags: `--${member}-name <name>`, summary: `The name of the ${member}`, required: true },
    ...common,
  ],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const [account, name] = [String(options.account), String(options[`${member}Name`])]
    if (!/^[0-9]{12}$/.test(account)) throw new CliError(exitCodes.usage, '--account must be 12 digits')
    // A session of a role has a name of its own after that of the role.
    const arn =
      member === 'role'
        ? { arnPattern: `arn:aws[a-z-]*:sts::${literal(account)}:assumed-role/${literal(name)}/.*` }
        : { arn: `arn:aws:iam::${account}:user/${name}` }
    return made(api, terminal, options, { awsIdentity: { awsAccount: account, ...arn } })
  },
})

const gcp: Command = {
  details: `The id is that of gcloud iam service-accounts describe ADDRESS --format='value(uniqueId)': an address can be given out
again, the id cannot.`,
  arguments: [nameArgument],
  options: [{ flags: '--service-account-id <number>', summary: 'The unique id', required: true }, ...common],
  async run(terminal, options) {
    const subject = String(options.serviceAccountId)
    if (!/^[0-9]{1,32}$/.test(subject)) throw new CliError(exitCodes.usage, '--service-account-id must be a number')
    const api = await apiReader(terminal, options)
    return made(api, terminal, options, { claimMatch: { issuer: 'https://accounts.google.com', subject } })
  },
}

const azure: Command = {
  details: `az identity show prints principalId and tenantId. The application is one that is registered for this server alone.`,
  arguments: [nameArgument],
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
    ...common,
  ],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const [tid, oid] = [String(options.tenantId), String(options.principalId)]
    for (const [flag, id] of Object.entries({ '--tenant-id': tid, '--principal-id': oid })) {
      if (!/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) {
        throw new CliError(exitCodes.usage, `${flag} must be an id such as 72f988bf-86f1-41af-91ab-2d7cd011db47`)
      }
    }
    const newer = options.tokenVersion === '2'
    const issuer = newer ? `https://login.microsoftonline.com/${tid}/v2.0` : `https://sts.windows.net/${tid}/`
    const claimMatch = { issuer, subject: oid, audience: options.application, claims: { oid, tid } }
    return made(api, terminal, options, { claimMatch })
  },
}

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

/** Makes it, binds it, and shows it with what its platform needs to know. */
async function made(
  api: ApiReader,
  terminal: Parameters<typeof printOne>[0],
  options: Options,
  relationship: object,
  snippet?: (uid: string, api: string) => string,
): Promise<number> {
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
  printOne(terminal, options.output, identities, identity, await mentioned(api, identities, [identity]))
  const forPeople = options.output === undefined || options.output === 'table' || options.output === 'wide'
  if (snippet && forPeople)
    for (const line of ['', ...snippet(identity.uid, api.session.api).split('\n')]) terminal.print(line)
  return exitCodes.ok
}

/** What options say of the claims wins member by member. */
function merged(written: object, given: object): object {
  const all: Record<string, unknown> = { ...written }
  for (const [name, value] of Object.entries(given)) all[name] = { ...(all[name] as object | undefined), ...value }
  return all
}

async function readIdentity(file: string): Promise<object> {
  const { readFile } = await import('node:fs/promises')
  const wrong = (why: string) => new CliError(exitCodes.usage, `--filename: ${file} ${why}`)
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw wrong(`cannot be read: ${error.code}`)
  })
  try {
    const identity: unknown = JSON.parse(text)
    if (identity !== null && typeof identity === 'object' && !Array.isArray(identity)) return identity
  } catch {
    // Told below.
  }
  throw wrong('holds no JSON object')
}

/** A text as a regular expression that matches nothing else. */
function literal(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

function dayOf(day: string): string {
  if (/^\d{4}-\d{2}-\d{2}$/.test(day)) return `${day}T00:00:00Z`
  throw new CliError(exitCodes.usage, '--expiration must be a day such as 2026-12-31')
}

function optionOf({ flags, summary, map }: Field): OptionSpec {
  return { flags, summary, ...(map && { repeat: true }) }
}
