// Routes of one kind of resource. People and groups differ only in their `Resources`.
import type { Work } from '#app.ts'
import { endpointOf } from '#domains/iam/identity-providers/scim-settings.model.ts'
import type { ScimResource } from '#domains/iam/scim/scim-users.model.ts'
import {
  type Answer,
  type Asked,
  isKnownVersion,
  listOf,
  ok,
  projectionOf,
  readJson,
  requireVersion,
  type Search,
  searchOf,
  searchOfBody,
} from './exchange.ts'
import type { FilterNames } from './filter.ts'
import type { ScimKind } from './kinds.ts'
import type { Json } from './names.ts'
import { type Projection, project } from './projection.ts'
import { readAttributes } from './resource.ts'

/** Service calls for one kind of resource. `T` is a resource, `C` a change of one. */
export type Resources<T extends { id: string }, C> = {
  kind: ScimKind
  filters: FilterNames
  versionOf(resource: T): string
  list(work: Work, provider: string, search: Search): Promise<{ total: number; found: readonly T[] }>
  get(work: Work, provider: string, id: string): Promise<T>
  create(work: Work, provider: string, given: Json): Promise<T>
  /** Calls `change` with the present resource. It throws to refuse the change. */
  change(work: Work, provider: string, id: string, change: (before: T) => C): Promise<T>
  delete(work: Work, provider: string, id: string, check: (before: T) => void): Promise<void>
  /** Change of a PUT. */
  readReplacement(given: Json): (before: T) => C
  /** Change of a PATCH. */
  readPatch(body: unknown): (before: T) => C
  /** Resources in the format of SCIM. Parts that are not shown may be missing. */
  describe(work: Work, resources: readonly T[], shown: Projection, url: string): Promise<ScimResource[]>
}

export type Route = (work: Work, asked: Asked, id: string) => Promise<Answer> | Answer
export type Routes = Readonly<Record<string, Route>>

/** Routes of all resources of a kind, of the search in a body, and of one resource. */
export function createRoutes<T extends { id: string }, C>(
  resources: Resources<T, C>,
): Record<'all' | 'search' | 'one', Routes> {
  const { kind, filters, versionOf } = resources

  const find = async (work: Work, { url, provider }: Asked, search: Search): Promise<Answer> => {
    const { total, found } = await resources.list(work, provider, search)
    const described = await resources.describe(work, found, search.shown, url)
    const shown = described.map((one) => project(one, search.shown))
    return ok(listOf(shown, total, search.skip + 1))
  }
  const answerWith = async (work: Work, one: T, shown: Projection, url: string): Promise<Answer> => {
    const [described] = await resources.describe(work, [one], shown, url)
    return { status: 200, text: JSON.stringify(project(described!, shown)), headers: { etag: versionOf(one) } }
  }
  const change = async (work: Work, asked: Asked, id: string, apply: (before: T) => C): Promise<Answer> => {
    const shown = projectionOf(asked, kind)
    const changed = await resources.change(work, asked.provider, id, (before) => {
      requireVersion(asked, versionOf(before), kind)
      return apply(before)
    })
    return answerWith(work, changed, shown, asked.url)
  }
  return {
    all: {
      GET: (work, asked) => find(work, asked, searchOf(asked, kind, filters)),
      async POST(work, asked) {
        const { arrival, url, provider } = asked
        const shown = projectionOf(asked, kind)
        const created = await resources.create(work, provider, readAttributes(await readJson(arrival), kind))
        const answer = await answerWith(work, created, shown, url)
        const location = `${endpointOf(url, provider)}/${kind.endpoint}/${created.id}`
        return { ...answer, status: 201, headers: { ...answer.headers, location } }
      },
    },
    search: {
      POST: async (work, asked) => find(work, asked, await searchOfBody(asked, kind, filters)),
    },
    one: {
      async GET(work, asked, id) {
        const one = await resources.get(work, asked.provider, id)
        const shown = projectionOf(asked, kind)
        const etag = versionOf(one)
        return isKnownVersion(asked, etag)
          ? { status: 304, headers: { etag } }
          : answerWith(work, one, shown, asked.url)
      },
      async PUT(work, asked, id) {
        const given = readAttributes(await readJson(asked.arrival), kind)
        return change(work, asked, id, resources.readReplacement(given))
      },
      async PATCH(work, asked, id) {
        return change(work, asked, id, resources.readPatch(await readJson(asked.arrival)))
      },
      async DELETE(work, asked, id) {
        await resources.delete(work, asked.provider, id, (one) => requireVersion(asked, versionOf(one), kind))
        return { status: 204 }
      },
    },
  }
}
