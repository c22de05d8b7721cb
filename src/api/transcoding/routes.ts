// Routes HTTP requests to methods. The routes are built from the google.api.http options of the contract.
import { type DescMethod, hasOption } from '@bufbuild/protobuf'
import { http } from '#gen/google/api/annotations_pb.ts'
import type { HttpRule } from '#gen/google/api/http_pb.ts'
import { invalid } from '#lib/errors.ts'
import { optionOf } from '../option-of.ts'
import { fieldNamed } from './message-fields.ts'
import { compileTemplate, type PathTemplate, type Variable } from './path-template.ts'

/** HTTP method and path of a method. `body` is `*`, the name of a request field, or empty. */
export type Binding = { httpMethod: string; path: string; body: string; fields: readonly string[] }

export type Matched<Entry> = { entry: Entry; binding: Binding; variables: readonly Variable[] }

export type Routes<Entry> = {
  /**
   * Finds the method of a request. `rawPath` is the path as received, without the query. If the path exists only with other HTTP
   * methods, returns those. Undefined for an unknown path.
   */
  match(httpMethod: string, rawPath: string): Matched<Entry> | { allowed: string[] } | undefined
}

type Route<Entry> = { entry: Entry; binding: Binding; template: PathTemplate }

/** Builds the table. Throws for an unsupported template, and for two methods with the same path and HTTP method. */
export function buildRoutes<Entry extends { desc: DescMethod }>(methods: readonly Entry[]): Routes<Entry> {
  const exact = new Map<string, Map<string, Matched<Entry>>>()
  const buckets = new Map<string, Route<Entry>[]>()
  const seen = new Set<string>()
  for (const route of methods.flatMap(routesOf)) {
    const { entry, binding, template } = route
    const key = `${binding.httpMethod} ${binding.path}`
    if (seen.has(key)) throw new Error(`two methods are bound to ${key}`)
    seen.add(key)
    if (binding.fields.length === 0) {
      const byMethod = exact.get(binding.path) ?? new Map<string, Matched<Entry>>()
      exact.set(binding.path, byMethod.set(binding.httpMethod, { entry, binding, variables: [] }))
    } else {
      if (template.literals.length < 3)
        throw new Error(`${binding.path} has fewer than three segments before a variable`)
      const bucket = `/${template.literals.slice(0, 3).join('/')}`
      buckets.set(bucket, [...(buckets.get(bucket) ?? []), route])
    }
  }
  for (const routes of buckets.values()) routes.sort((a, b) => compareRanks(b.template.rank, a.template.rank))

  return {
    match(httpMethod, rawPath) {
      const path = stablePath(rawPath)
      const literal = exact.get(path)
      const found = literal?.get(httpMethod)
      if (found) return found

      const routes = buckets.get(bucketOf(path)) ?? []
      for (const { entry, binding, template } of routes) {
        if (binding.httpMethod !== httpMethod) continue
        const variables = template.match(path)
        if (variables) return { entry, binding, variables: variables.map(decode) }
      }

      const others = routes.filter(({ template }) => template.match(path)).map(({ binding }) => binding.httpMethod)
      const allowed = [...new Set([...(literal?.keys() ?? []), ...others])].sort()
      return allowed.length > 0 ? { allowed } : undefined
    },
  }
}

function routesOf<Entry extends { desc: DescMethod }>(entry: Entry): Route<Entry>[] {
  const { input } = entry.desc
  if (!hasOption(entry.desc, http)) return []
  const rule = optionOf(entry.desc, http)
  return [rule, ...rule.additionalBindings].map((each) => {
    const { httpMethod, path } = patternOf(each)
    const template = compileTemplate(path)
    const body = fieldNamed(input, each.body)
    if (each.body !== '' && each.body !== '*' && body?.fieldKind !== 'message' && body?.fieldKind !== 'list') {
      throw new Error(`the body of ${path} is neither a message nor a list in ${input.typeName}`)
    }
    return { entry, binding: { httpMethod, path, body: each.body, fields: template.fields }, template }
  })
}

function patternOf(rule: HttpRule): { httpMethod: string; path: string } {
  const { pattern } = rule
  if (pattern.case === undefined) throw new Error('a google.api.http option has no pattern')
  if (pattern.case === 'custom') return { httpMethod: pattern.value.kind, path: pattern.value.path }
  return { httpMethod: pattern.case.toUpperCase(), path: pattern.value }
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  return a.map((rank, i) => rank - b[i]!).find((difference) => difference !== 0) ?? 0
}

/** Replaces the preview's path segment `v2beta1` by `v2`. */
function stablePath(path: string): string {
  const second = path.indexOf('/', 1)
  return path.startsWith('/v2beta1/', second) ? `${path.slice(0, second)}/v2${path.slice(second + 8)}` : path
}

/** First three segments of a path. Removes a verb after the third one. */
function bucketOf(path: string): string {
  let end = 0
  for (let segment = 0; segment < 3; segment++) {
    end = path.indexOf('/', end + 1)
    if (end < 0) end = path.length
  }
  const bucket = path.slice(0, end)
  const verb = bucket.indexOf(':')
  return verb < 0 ? bucket : bucket.slice(0, verb)
}

function decode(variable: Variable): Variable {
  const [field, value] = variable
  if (!value.includes('%')) return variable
  try {
    return [field, decodeURIComponent(value)]
  } catch {
    throw invalid({ field: field.split('.').at(-1)!, description: 'has invalid percent-encoding' })
  }
}
