// The grammars of the distribution specification, "Pulling manifests": what repositories and tags may be called.

const component = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*'

/** One component of a path, such as the name of a repo. */
export const componentPattern = new RegExp(`^${component}$`)
/** How long a component, or a whole path, may be. */
export const maxPathLength = 255

const pathPattern = new RegExp(`^${component}(?:/${component})+$`)

/** The path of a repository: at least an organisation and a name. */
export function isRepoPath(path: string): boolean {
  return path.length <= maxPathLength && pathPattern.test(path)
}

export const tagPattern = /^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$/
export const maxTagLength = 128

export function isTagName(name: string): boolean {
  return tagPattern.test(name)
}

// What no new organisation may be called, because its name would be read as something else in a path. An organisation
// that has such a name already keeps it.
type Reserved = { pattern: RegExp; why: string }

const reserved: readonly Reserved[] = [
  // The first component of a pull path that says as of when tags are read: `at-20261101`, `min-7d`, `min-7d_at-20261101`.
  { pattern: /^(?:at|min)-/, why: 'starts like a point in time or an age in the path of an image' },
  // A path may name an organisation by its uid.
  { pattern: /^[0-9a-f]{40}$/, why: 'reads like the uid of an organisation' },
  // `/v2/<view>/v2/…`, as clients write the path of a mirror, and `/ledger/witness/…` beside `/ledger/<organisation>/…`.
  { pattern: /^(?:v2|witness)$/, why: 'is a part of the paths that this server serves' },
]

/** Why an organisation may not take this name, as the end of a sentence; `undefined` when it may. */
export function reservedReason(name: string): string | undefined {
  return reserved.find(({ pattern }) => pattern.test(name))?.why
}
