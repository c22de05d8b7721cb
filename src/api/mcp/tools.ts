// Tools for agents: the offered methods of the contract, with names and hints.
import { readFileSync } from 'node:fs'
import type { DescMethod } from '@bufbuild/protobuf'
import { tool } from '#gen/pinfold/annotations/annotations_pb.ts'
import { snakeCase } from '#lib/fields.ts'
import { type Endpoint, isStreaming } from '../methods.ts'
import { optionOf } from '../option-of.ts'

/** Hints for agents, as the protocol spells them. */
export type Annotations = {
  readOnlyHint: boolean
  destructiveHint: boolean
  idempotentHint: boolean
  openWorldHint: boolean
}

/** Part of a tool that `npm run gen` writes, made from comments and messages. */
export type ToolText = {
  title: string
  description: string
  inputSchema: object
  outputSchema: object
  annotations: Annotations
}

/** `version` is that of the release. */
export type ToolTexts = { version: string; tools: Record<string, ToolText> }

export type Tools = {
  /** Method of a tool name. */
  find(name: string): Endpoint | undefined
  /** JSON list of all tools in the order of the contract, and their release. */
  texts(): { version: string; list: string }
}

const file = new URL('../../../gen/mcp-tools.json', import.meta.url)

/** True for methods that are tools: unary ones of version 2 that the contract does not hide. */
export function isTool({ method, desc }: Pick<Endpoint, 'method' | 'desc'>): boolean {
  return method.version === 'v2' && !isStreaming({ desc }) && !optionOf(desc, tool).hidden
}

/** `list_repos` for ListRepos. */
export function toolName({ name }: DescMethod): string {
  return snakeCase(name.charAt(0).toLowerCase() + name.slice(1))
}

/** Hints of a method. Unset options have the defaults of the protocol, which are the pessimistic ones. */
export function annotationsOf(method: DescMethod): Annotations {
  const { readOnly = false, destructive = true, idempotent = false, openWorld = true } = optionOf(method, tool)
  return {
    readOnlyHint: readOnly,
    destructiveHint: destructive && !readOnly,
    idempotentHint: idempotent,
    openWorldHint: openWorld,
  }
}

export function createTools(endpoints: readonly Endpoint[]): Tools {
  const served = endpoints.filter((endpoint) => isTool(endpoint) && endpoint.handler)
  const byName = new Map(served.map((endpoint) => [toolName(endpoint.desc), endpoint]))
  // Read at the first request.
  let known: ReturnType<Tools['texts']> | undefined
  const read = () => {
    const { version, tools } = JSON.parse(readFileSync(file, 'utf8')) as ToolTexts
    return { version, list: JSON.stringify([...byName.keys()].map((name) => ({ name, ...tools[name] }))) }
  }
  return {
    find: (name) => byName.get(name),
    texts() {
      known ??= read()
      return known
    },
  }
}
