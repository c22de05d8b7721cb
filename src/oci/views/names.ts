// From the path of a repository as the client wrote it to the repository's own: without the view that it is read in, and
// with what the settings put before every path at a host.
import { looksLikeView, readView, type View, ViewProblem } from '#domains/policy/views/views.model.ts'
import type { HttpArrival } from '#edge/doors.ts'
import { OciError } from '../errors.ts'
import type { Named, Registry } from '../visit.ts'

export const noName: Named = { name: '', written: '', whole: '', view: undefined }

/** The name of what is no view, which needs no look-up; `undefined` for what may be one. */
export function plainName(prefix: string, written: string): Named | undefined {
  const whole = prefix === '' ? written : `${prefix}/${written}`
  const end = whole.indexOf('/')
  if (looksLikeView(end < 0 ? whole : whole.slice(0, end))) return undefined
  return { name: whole, written, whole, view: undefined }
}

/** An organisation that has the name of a view keeps it. Throws NAME_INVALID for a view that is none. */
export async function nameFrom(registry: Registry, prefix: string, written: string): Promise<Named> {
  const plain = plainName(prefix, written)
  if (plain) return plain
  const whole = prefix === '' ? written : `${prefix}/${written}`
  const [first = '', ...rest] = whole.split('/')
  const { paths } = registry.app
  if (await paths.hasOrganization(first)) return { name: whole, written, whole, view: undefined }
  const view = viewOf(first)
  // Clients of a mirror write the version of the protocol behind its path.
  const doubled = rest[0] === 'v2' && !(await paths.hasOrganization('v2'))
  return { name: rest.slice(doubled ? 1 : 0).join('/'), written, whole, view }
}

/** The same, and `undefined` for a view that is none. */
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

/** What the settings put before the paths at the host that the client has called. */
export function prefixAt({ app }: Registry, arrival: HttpArrival): string {
  const { hostPaths } = app.config
  if (hostPaths.size === 0) return ''
  const { called } = arrival
  if (!called) return ''
  const host = called.origin.slice(called.origin.indexOf('://') + 3)
  // What stands below such a host is that host to whoever has set it.
  for (let name = host; name !== ''; name = name.includes('.') ? name.slice(name.indexOf('.') + 1) : '') {
    const prefix = hostPaths.get(name)
    if (prefix !== undefined) return prefix
  }
  return ''
}
