// The tools: which methods of the contract are offered to agents, under which names and with which hints.
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

/** What `npm run gen` writes of a tool: all that is made from comments and messages. */
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
  /** The method that a name stands for. */
  find(name: string): Endpoint | undefined
  /** The JSON list of all tools, in the order of the contract, and the release that has them. */
  texts(): { version: string; list: string }
}

const file = new URL('../../../gen/mcp-tools.json', import.meta.url)

/** Whether agents are offered the method: those of version 2 that the contract does not hide. */
export function isTool({ method, desc }: Pick<Endpoint, 'method' | 'desc'>): boolean {
  return method.version === 'v2' && !isStreaming({ desc }) && !optionOf(desc, tool).hidden
}

/** `list_repos` for ListRepos. */
export function toolName({ name }: DescMethod): string {
  return snakeCase(name.charAt(0).toLowerCase() + name.slice(1))
}

/** What the contract leaves unset is as the protocol has it, which is the worse. */
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
  // Read when somebody asks for it first.
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
