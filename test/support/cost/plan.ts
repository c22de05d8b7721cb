// Selection of the inputs to send: all of them or, in the short version, a few for each method and entry point.

import { httpOf } from '../../../scripts/openapi-annotations.ts'
import { declaredKinds, doorInputs, isDeletion } from './entry-points.ts'
import type { Input } from './input.ts'
import { libraryInputs, libraryTargets } from './library-services.ts'
import { basesOf, endpoints, methodInputs } from './methods.ts'
import { otherWays, wayTargets } from './other-ways.ts'
import type { Facts } from './server.ts'
import type { Wire } from './wire.ts'

/**
 * All inputs, in the order in which they are sent. Entry points come first, since policies that methods create can refuse pulls.
 * Their deletions come last, since methods need what they delete.
 */
export function allInputs(facts: Facts, wire: Wire): Input[] {
  const ofMethods = basesOf(facts, wire).flatMap((base) => [...methodInputs(base), ...otherWays(base)])
  const ofEntryPoints = doorInputs(facts, wire)
  const deletions = ofEntryPoints.filter(isDeletion)
  return [...ofEntryPoints.filter((one) => !isDeletion(one)), ...ofMethods, ...libraryInputs(wire), ...deletions]
}

/**
 * Selects all special inputs, and one other input for each target. Some targets get a shape that all have, others a shape of
 * their own. A method with REST and gRPC gets inputs for one of the two, alternately.
 */
export function someInputs(inputs: readonly Input[]): Input[] {
  const common = inputs.filter(({ isRare }) => !isRare)
  const byTarget = [...Map.groupBy(common, ({ target }) => target)]
  const byMethod = Map.groupBy(byTarget, ([target]) => target.replace(/^(?:rest|grpc) (?=pinfold\.)/, ''))
  return [...byMethod.values()].flatMap((ways, at) => {
    const always = ways.flatMap(([, all]) => all.filter(({ isSpecial }) => isSpecial))
    const [, all] = ways[at % ways.length]!
    const others = all.filter(({ isSpecial }) => !isSpecial)
    if (others.length === 0) return always
    // Shapes that all targets have come first. The step is a prime number, so every shape is selected for some target.
    const among = at % 4 < 2 ? Math.min(others.length, shared) : others.length
    return [...always, others[(Math.floor(at / 4) * 11) % among]!]
  })
}

const shared = 15

/** Targets that must have an input. They come from the descriptors and from the declarations of the entry points. */
export function requiredTargets(facts: Facts): string[] {
  const methods = endpoints.flatMap(({ method, desc, handler }) => {
    if (!handler) return []
    return httpOf(desc).length > 0
      ? [`grpc ${method.fullName}`, `rest ${method.fullName}`]
      : [`grpc ${method.fullName}`]
  })
  const kinds = [...declaredKinds(facts)].flatMap(([of, verbs]) => {
    const [transport, ...kind] = of.split(' ')
    return [...verbs].map((verb) => `${transport} ${verb} ${kind.join(' ')}`)
  })
  return [...methods, ...kinds, ...libraryTargets, ...wayTargets]
}

/** Targets that must have an input but have none. */
export function missingTargets(facts: Facts, inputs: readonly Input[]): string[] {
  const has = new Set(inputs.map(({ target }) => target))
  return requiredTargets(facts).filter((target) => !has.has(target))
}

type Reached = readonly { transport: string; method: string }[]

/** Declared methods that no request has reached, by the server's own metrics. A request through any entry point is enough. */
export function unreached(facts: Facts, reached: Reached): string[] {
  const methods = new Set(endpoints.map(({ method }) => method.name))
  const nameOf = (transport: string, method: string) => (methods.has(method) ? method : `${transport} ${method}`)
  const counted = new Set(reached.map(({ transport, method }) => nameOf(transport, method)))
  // Methods of the MCP protocol itself have their inputs in mcpBodies.
  const declared = facts.doors.flatMap(({ transport, methods }) => methods.map((method) => nameOf(transport, method)))
  const withoutHandler = endpoints.filter(({ handler }) => !handler).map(({ method }) => method.name)
  return [...new Set(declared)].filter((one) => !counted.has(one) && !withoutHandler.includes(one))
}
