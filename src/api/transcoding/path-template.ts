// Path templates of google.api.http. Each is compiled to a matcher that reads a path once and never backtracks.

/** Path of a request field, and its value from the URL path. */
export type Variable = [field: string, value: string]

export type PathTemplate = {
  /** Literal segments before the first variable. Without a variable, all segments. */
  literals: readonly string[]
  /** Request fields that get their values from the path. */
  fields: readonly string[]
  /** Rank of the template if several match the same path. At the first difference, the higher number wins. */
  rank: readonly number[]
  /** Values of the variables in a path, still percent-encoded. Undefined if the path does not match. */
  match(path: string): Variable[] | undefined
}

type Segment = { literal: string } | { field: string; greedy: boolean }

/**
 * Compiles a template. It may contain literals, `{field}`, `{field=*}`, `{field=**}` as the first variable, and `:verb` at the
 * end. Throws for anything else.
 */
export function compileTemplate(template: string): PathTemplate {
  const { segments, verb } = parse(template)
  const firstVariable = segments.findIndex((segment) => 'field' in segment)
  const literals = segments
    .slice(0, firstVariable < 0 ? undefined : firstVariable)
    .map((s) => ('literal' in s ? s.literal : ''))
  const variables = segments.slice(literals.length)
  const greedy = variables[0] && 'field' in variables[0] && variables[0].greedy ? variables[0].field : undefined
  const tail = greedy === undefined ? variables : variables.slice(1)
  if (tail.some((segment) => 'field' in segment && segment.greedy)) throw new Error(`unsupported template ${template}`)
  const shape: Shape = { prefix: `/${literals.join('/')}`, greedy, backwards: tail.toReversed(), verb }

  return {
    literals,
    fields: variables.flatMap((segment) => ('field' in segment ? [segment.field] : [])),
    rank: [literals.length, verb === '' ? 0 : 1, tail.length, greedy === undefined ? 1 : 0],
    match: (path) => match(path, shape),
  }
}

function parse(template: string): { segments: Segment[]; verb: string } {
  const [, body, verb] = /^\/(.*?)(:[A-Za-z]\w*)?$/.exec(template) ?? []
  if (!body) throw new Error(`unsupported template ${template}`)
  const segments = body.split('/').map((segment) => {
    const [, field, pattern = '*'] = /^\{([\w.]+)(?:=(\*\*?))?\}$/.exec(segment) ?? []
    if (field) return { field, greedy: pattern === '**' }
    if (!/^[\w.-]+$/.test(segment)) throw new Error(`unsupported template ${template}`)
    return { literal: segment }
  })
  return { segments, verb: verb ?? '' }
}

/** Parts of a template: the text before the first variable, the verb, and the other segments from right to left. */
type Shape = { prefix: string; greedy: string | undefined; backwards: readonly Segment[]; verb: string }

/**
 * Matches a path. Removes the verb from the end, and then the segments after the greedy variable from right to left. The rest is
 * the value of the greedy variable.
 */
function match(path: string, { prefix, greedy, backwards, verb }: Shape): Variable[] | undefined {
  if (!path.startsWith(prefix) || !path.endsWith(verb)) return undefined
  const start = prefix.length
  let end = path.length - verb.length
  const variables: Variable[] = []
  for (const segment of backwards) {
    const slash = path.lastIndexOf('/', end - 1)
    const text = path.slice(slash + 1, end)
    if (slash < start || text === '') return undefined
    if ('field' in segment) variables.push([segment.field, text])
    else if (segment.literal !== text) return undefined
    end = slash
  }
  if (greedy === undefined) return end === start ? variables.reverse() : undefined
  if (end < start || (end > start && path[start] !== '/')) return undefined
  return [[greedy, path.slice(start + 1, end)], ...variables.reverse()]
}
