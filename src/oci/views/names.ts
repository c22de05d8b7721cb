// Resolves the path that a client wrote to the path of a repository. Removes a view from the path, and adds the path prefix that
// is configured for the host.
import { looksLikeView, readView, type View, ViewProblem } from '#domains/policy/views/views.model.ts'
import type { HttpArrival } from '#edge/entry-points.ts'
import { OciError } from '../errors.ts'
import type { Named, Registry } from '../visit.ts'

export const noName: Named = { name: '', written: '', whole: '', view: undefined }

/** Resolves a path without a view. Returns undefined if the path may begin with a view, which needs a look-up. */
export function plainName(prefix: string, written: string): Named | undefined {
  const whole = prefix === '' ? written : `${prefix}/${written}`
  const end = whole.indexOf('/')
  if (looksLikeView(end < 0 ? whole : whole.slice(0, end))) return undefined
  return { name: whole, written, whole, view: undefined }
}

/**
 * Resolves a path. If an organization has the name of a view, the path means the organization. Throws NAME_INVALID for an invalid
 * view.
 */
export async function nameFrom(registry: Registry, prefix: string, written: string): Promise<Named> {
  const plain = plainName(prefix, written)
  if (plain) return plain
  const whole = prefix === '' ? written : `${prefix}/${written}`
  const [first = '', ...rest] = whole.split('/')
  const { paths } = registry.app
  if (await paths.hasOrganization(first)) return { name: whole, written, whole, view: undefined }
  const view = viewOf(first)
  // Clients with a configured registry mirror append `v2` to its path. Here, the path of the mirror is a view.
  const doubled = rest[0] === 'v2' && !(await paths.hasOrganization('v2'))
  return { name: rest.slice(doubled ? 1 : 0).join('/'), written, whole, view }
}

/** Resolves a path like `nameFrom`. Returns undefined for an invalid view. */
export async function nameOrNone(registry: Registry, prefix: string, written: string): Promise<Named | undefined> {
  return nameFrom(registry, prefix, written).catch((error: unknown) => {
    if (error instanceof OciError) return undefined
    throw error
  })
}

function viewOf(text: string): View {
  try {
    return readView(text)
  } catch (error) {
    if (!(error instanceof ViewProblem)) throw error
    throw new OciError('NAME_INVALID', error.message, { detail: { view: text.slice(0, 100) } })
  }
}

/** Path prefix that is configured for the host of the request. */
export function prefixAt({ app }: Registry, arrival: HttpArrival): string {
  const { hostPaths } = app.config
  if (hostPaths.size === 0) return ''
  const { called } = arrival
  if (!called) return ''
  const host = called.origin.slice(called.origin.indexOf('://') + 3)
  // The prefix of a host also applies to its subdomains.
  for (let name = host; name !== ''; name = name.includes('.') ? name.slice(name.indexOf('.') + 1) : '') {
    const prefix = hostPaths.get(name)
    if (prefix !== undefined) return prefix
  }
  return ''
}
