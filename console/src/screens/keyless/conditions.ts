// Conditions of an identity for the tokens of a CI job. They are made from the URL of the job's repository, or from one of its
// tokens. The token is parsed in the browser: only its claims are sent, never its signature.
export type Conditions = {
  issuer: string
  subject?: string
  subjectPattern?: string
  claims?: Record<string, string>
}

export type Plan = {
  platform: 'github' | 'gitlab' | 'other'
  /** Default name of the identity. */
  name: string
  conditions: Conditions
  /** Claims of the pasted token, as JSON. */
  claims?: string
  /** True if the conditions contain only names and no ids. A name can later belong to another owner. */
  isRecyclable: boolean
}

const issuers = { github: 'https://token.actions.githubusercontent.com', gitlab: 'https://gitlab.com' }

/** Conditions for a URL or a token. Undefined for any other text. */
export function planOf(text: string): Plan | undefined {
  const given = text.trim()
  return /^[\w-]+\.[\w-]+\.[\w-]*$/.test(given) ? ofToken(given) : ofAddress(given)
}

/** Changes a text to a valid name of an identity. */
const nameOf = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, ' ')
    .slice(0, 60)
    .trim()

const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

function ofAddress(text: string): Plan | undefined {
  const bare = text
    .replace(/^(?:https?:\/\/|git@|ssh:\/\/git@)/, '')
    .replace(/\.git$/, '')
    .replace(/\/$/, '')
  const [, host = '', path = ''] = /^([\w.-]+)[/:](.+)$/.exec(bare) ?? []
  if (host === 'github.com') {
    const [owner, name, ...more] = path.split('/')
    if (!owner || !name || more.length > 0 || !/^[\w.-]+\/[\w.-]+$/.test(path)) return undefined
    // Newer GitHub subjects have `@` and a numeric id after each name.
    const subjectPattern = `repo:${literal(owner)}(@[0-9]+)?/${literal(name)}(@[0-9]+)?:ref:refs/heads/main`
    const conditions = { issuer: issuers.github, subjectPattern }
    return { platform: 'github', name: nameOf(`${owner} ${name}`), conditions, isRecyclable: true }
  }
  if (host === 'gitlab.com' && /^[\w.-]+(?:\/[\w.-]+)+$/.test(path)) {
    const subject = `project_path:${path}:ref_type:branch:ref:main`
    const conditions = { issuer: issuers.gitlab, subject }
    return { platform: 'gitlab', name: nameOf(path), conditions, isRecyclable: true }
  }
  return undefined
}

function ofToken(token: string): Plan | undefined {
  const claims = claimsOf(token)
  if (!claims || typeof claims.iss !== 'string' || typeof claims.sub !== 'string') return undefined
  const { iss: issuer, sub: subject } = claims
  const ids = Object.fromEntries(
    ['repository_id', 'repository_owner_id', 'project_id', 'namespace_id'].flatMap((name) =>
      typeof claims[name] === 'string' ? [[name, claims[name]]] : [],
    ),
  )
  const platform = issuer === issuers.github ? 'github' : 'project_path' in claims ? 'gitlab' : 'other'
  const name = nameOf(String(claims.repository ?? claims.project_path ?? subject))
  const conditions = {
    issuer,
    ...subjectOf(platform, subject, claims),
    ...(Object.keys(ids).length > 0 && { claims: ids }),
  }
  const isRecyclable = platform !== 'other' && Object.keys(ids).length === 0
  return { platform, name, conditions, claims: JSON.stringify(claims), isRecyclable }
}

/** Pattern for both forms of GitHub's subjects. The user can widen the parts that differ between jobs. */
function subjectOf(platform: Plan['platform'], subject: string, { repository }: Record<string, unknown>) {
  const [, owner, name] = platform === 'github' ? (/^([\w.-]+)\/([\w.-]+)$/.exec(String(repository)) ?? []) : []
  const rest = /^repo:[^:]+:(.+)$/.exec(subject)?.[1]
  if (!owner || !name || rest === undefined) return { subject }
  return { subjectPattern: `repo:${literal(owner)}(@[0-9]+)?/${literal(name)}(@[0-9]+)?:${literal(rest)}` }
}

function claimsOf(token: string): Record<string, unknown> | undefined {
  try {
    const middle = token.split('.')[1]!.replaceAll('-', '+').replaceAll('_', '/')
    const bytes = Uint8Array.from(atob(middle), (one) => one.charCodeAt(0))
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes))
    return claims instanceof Object && !Array.isArray(claims) ? (claims as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
