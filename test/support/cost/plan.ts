// Which inputs are sent: all of them, or in the short version a few for each method and entry point.

import { httpOf } from '../../../scripts/openapi-annotations.ts'
import { declaredKinds, doorInputs } from './doors.ts'
import type { Input } from './input.ts'
import { libraryInputs, libraryTargets } from './library-services.ts'
import { endpoints, methodInputs } from './methods.ts'
import { otherWays, wayTargets } from './other-ways.ts'
import type { Facts } from './server.ts'
import type { Wire } from './wire.ts'

/** Everything that there is, in the order in which it is sent. */
export function allInputs(facts: Facts, wire: Wire): Input[] {
  return [...otherWays(facts, wire), ...methodInputs(facts, wire), ...libraryInputs(wire), ...doorInputs(facts, wire)]
}

/** The special inputs, and one other for each target: some get a shape that all have, the rest one of their own. */
export function someInputs(inputs: readonly Input[]): Input[] {
  const byTarget = Map.groupBy(
    inputs.filter(({ isRare }) => !isRare),
    ({ target }) => target,
  )
  return [...byTarget.values()].flatMap((all, at) => {
    const always = all.filter(({ isSpecial }) => isSpecial)
    const others = all.filter(({ isSpecial }) => !isSpecial)
    if (others.length === 0) return always
    // The shapes that all have come first. The step is prime, so that it reaches each of them.
    const among = at % 2 === 0 ? Math.min(others.length, shared) : others.length
    return [...always, others[(Math.floor(at / 2) * 11) % among]!]
  })
}

const shared = 15

/** Targets that must have an input, from the descriptors and from what the doors declare. */
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

/** What of that has no input. */
export function missingTargets(facts: Facts, inputs: readonly Input[]): string[] {
  const has = new Set(inputs.map(({ target }) => target))
  return requiredTargets(facts).filter((target) => !has.has(target))
}

type Reached = readonly { transport: string; method: string }[]

/** What the doors declare and the server has not counted. Methods are counted at any of the doors that lead to them. */
export function unreached(facts: Facts, reached: Reached): string[] {
  const counted = new Set(reached.map(({ transport, method }) => `${transport} ${method}`))
  const shared = ['ui-api', 'mcp']
  const ofDoors = facts.doors
    .filter(({ transport }) => !shared.includes(transport))
    .flatMap(({ transport, methods }) => methods.map((method) => `${transport} ${method}`))
  const ofGrpc = endpoints.filter(({ handler }) => handler).map(({ method }) => `grpc ${method.name}`)
  // Methods of gRPC alone are declared at the other doors too.
  const withoutHttp = endpoints.filter(({ desc, handler }) => !handler || httpOf(desc).length === 0)
  const elsewhere = new Set(withoutHttp.map(({ method }) => `rest ${method.name}`))
  return [...new Set([...ofDoors, ...ofGrpc])].filter((one) => !counted.has(one) && !elsewhere.has(one))
}
