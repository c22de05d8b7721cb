// SCIM routes for one kind of resource. Users and groups have the same routes with different `Resources`.
import type { Work } from '#app.ts'
import { endpointOf } from '#domains/iam/identity-providers/scim-settings.model.ts'
import type { ScimResource } from '#domains/iam/scim/scim-users.model.ts'
import {
  isKnownVersion,
  listOf,
  ok,
  projectionOf,
  readJson,
  requireVersion,
  type ScimAnswer,
  type ScimRequest,
  type Search,
  searchOf,
  searchOfBody,
} from './exchange.ts'
import type { FilterNames } from './filter.ts'
import type { ScimKind } from './kinds.ts'
import type { Json } from './names.ts'
import { type Projection, project } from './projection.ts'
import { readAttributes } from './resource.ts'

/** Services and conversions for one kind of resource. `T` is the resource, and `C` is a change of it. */
export type Resources<T extends { id: string }, C> = {
  kind: ScimKind
  filters: FilterNames
  versionOf(resource: T): string
  list(work: Work, provider: string, search: Search): Promise<{ total: number; found: readonly T[] }>
  get(work: Work, provider: string, id: string): Promise<T>
  create(work: Work, provider: string, given: Json): Promise<T>
  /** Updates a resource with the result of `change`, which gets the stored resource. If `change` throws, nothing is updated. */
  change(work: Work, provider: string, id: string, change: (before: T) => C): Promise<T>
  delete(work: Work, provider: string, id: string, check: (before: T) => void): Promise<void>
  /** Reads the body of a PUT. Returns a function that computes the change. */
  readReplacement(given: Json): (before: T) => C
  /** Reads the body of a PATCH. Returns a function that computes the change. */
  readPatch(body: unknown): (before: T) => C
  /** Converts resources to SCIM. May leave out attributes that `shown` does not select. */
  describe(work: Work, resources: readonly T[], shown: Projection, url: string): Promise<ScimResource[]>
}

export type Route = (work: Work, asked: ScimRequest, id: string) => Promise<ScimAnswer> | ScimAnswer
export type Routes = Readonly<Record<string, Route>>

/** Routes of one kind of resource: list, search by POST, and single resources. */
export function createRoutes<T extends { id: string }, C>(
  resources: Resources<T, C>,
): Record<'all' | 'search' | 'one', Routes> {
  const { kind, filters, versionOf } = resources

  const find = async (work: Work, { url, provider }: ScimRequest, search: Search): Promise<ScimAnswer> => {
    const { total, found } = await resources.list(work, provider, search)
    const described = await resources.describe(work, found, search.shown, url)
    const shown = described.map((one) => project(one, search.shown))
    return ok(listOf(shown, total, search.skip + 1))
  }
  const answerWith = async (work: Work, one: T, shown: Projection, url: string): Promise<ScimAnswer> => {
    const [described] = await resources.describe(work, [one], shown, url)
    return { status: 200, text: JSON.stringify(project(described!, shown)), headers: { etag: versionOf(one) } }
  }
  const change = async (work: Work, asked: ScimRequest, id: string, apply: (before: T) => C): Promise<ScimAnswer> => {
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
