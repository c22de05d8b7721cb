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

export function isTagName(name: string): boolean {
  return tagPattern.test(name)
}
