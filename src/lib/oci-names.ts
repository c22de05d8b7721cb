// Grammar of names of repositories and tags (distribution specification, "Pulling manifests").

const component = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*'

/** Component of a path, such as the name of a repository. */
export const componentPattern = new RegExp(`^${component}$`)
/** Maximum number of characters of a component, and of a whole path. */
export const maxPathLength = 255

const pathPattern = new RegExp(`^${component}(?:/${component})+$`)

/** True for the path of a repository: at least an organization and a name. */
export function isRepoPath(path: string): boolean {
  return path.length <= maxPathLength && pathPattern.test(path)
}

export const tagPattern = /^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$/
export const maxTagLength = 128

export function isTagName(name: string): boolean {
  return tagPattern.test(name)
}

// Names that a new organization cannot have, since they mean something else in a path. An organization that already has such a
// name keeps it.
type Reserved = { pattern: RegExp; why: string }

const reserved: readonly Reserved[] = [
  // View of a pull path, which selects tags as of a date or an age: `at-20261101`, `min-7d`, `min-7d_at-20261101`.
  { pattern: /^(?:at|min)-/, why: 'names that start with at- or min- are read as snapshot or cooldown views' },
  // A path may contain the uid of an organization instead of its name.
  { pattern: /^[0-9a-f]{40}$/, why: 'the name is read as the uid of an organization' },
  // `v2` is part of `/v2/<view>/v2/…`, the path of a mirror in some clients. `witness` is part of `/ledger/witness/…`, beside
  // `/ledger/<organization>/…`.
  { pattern: /^(?:v2|witness)$/, why: 'this server uses the name in its own paths' },
]

/** Reason why an organization cannot have this name, as the end of a sentence. `undefined` if the name is allowed. */
export function reservedReason(name: string): string | undefined {
  return reserved.find(({ pattern }) => pattern.test(name))?.why
}
