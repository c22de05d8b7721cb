// Reader of YAML files with the advisories of one package, in `package.name` and `advisories`. An advisory has an id, aliases and
// events. Every value is read as text.
import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, type YAMLMap } from 'yaml'
import { parseTimestamp } from '#lib/timestamp.ts'
import type { ImportRecord, Problem, Records } from './import-batches.ts'

/** Error in one record. It never leaves this file: the other records are still read. */
class Wrong extends Error {
  readonly node: Node | null
  readonly field: string
  constructor(node: Node | null, field: string, description: string) {
    super(description)
    this.node = node
    this.field = field
  }
}

type Event = Record<string, unknown> & { createTime: string }

const maxProblems = 1000

/** Reads a file. Returns the valid records, and the problems of the others. A file that is not YAML is one problem. */
export function readAdvisories(file: string, text: string, author: string): Records {
  const lines = new LineCounter()
  const lineOf = (node: Node | null) => lines.linePos(node?.range?.[0] ?? 0).line
  const problem = (error: unknown): Problem => {
    if (!(error instanceof Wrong)) throw error
    return { file, line: lineOf(error.node), field: error.field, description: error.message }
  }
  try {
    // The failsafe schema reads `1.10` as text and not as a number. Aliases are never resolved.
    const document = parseDocument(text, { lineCounter: lines, schema: 'failsafe', logLevel: 'silent' })
    const [error] = document.errors
    if (error) {
      const line = error.linePos?.[0].line ?? 1
      return { records: [], problems: [{ file, line, field: '', description: firstLine(error.message) }] }
    }
    const root = mapOf(document.contents as Node | null, 'file')
    checkMembers(root, '', ['schema-version', 'package', 'advisories'])
    const version = textAt(root, 'schema-version', '')
    if (!/^2(?:\.|$)/.test(version)) throw new Wrong(nodeAt(root, 'schema-version'), 'schema-version', 'must be 2')
    const origin = textAt(mapOf(nodeAt(root, 'package'), 'package'), 'name', 'package')
    const records: ImportRecord[] = []
    const problems: Problem[] = []
    for (const item of itemsOf(nodeAt(root, 'advisories'), 'advisories')) {
      try {
        records.push(recordOf(item, { file, origin, author, lineOf }))
      } catch (wrong) {
        if (problems.push(problem(wrong)) >= maxProblems) break
      }
    }
    return { records, problems }
  } catch (wrong) {
    if (wrong instanceof RangeError) {
      return { records: [], problems: [{ file, line: 1, field: '', description: 'is nested too deeply' }] }
    }
    return { records: [], problems: [problem(wrong)] }
  }
}

type About = { file: string; origin: string; author: string; lineOf: (node: Node | null) => number }

function recordOf(item: Node, { file, origin, author, lineOf }: About): ImportRecord {
  const map = mapOf(item, 'advisories')
  checkMembers(map, '', ['id', 'aliases', 'events'])
  const id = textAt(map, 'id', '')
  const aliases = nodeAt(map, 'aliases')
  const eventsNode = nodeAt(map, 'events')
  const events = itemsOf(eventsNode, 'events').map((event, i) => eventOf(event, `events[${i}]`, author))
  const component = componentOf(events)
  const body = {
    origin,
    advisory: {
      advisoryId: id,
      author,
      artifactName: origin,
      artifactType: 'apk',
      ...component,
      aliases: itemsOf(aliases, 'aliases').map((alias, i) => scalarOf(alias, `aliases[${i}]`)),
      events,
    },
  }
  const lineOfField = (field: string): number => {
    const [, member, index] = /^(aliases|events)(?:\[(\d+)\])?/.exec(field) ?? []
    const list = member === 'aliases' ? aliases : member === 'events' ? eventsNode : undefined
    const inside = index !== undefined && isSeq(list) ? (list.items[Number(index)] as Node) : undefined
    return lineOf(inside ?? list ?? item)
  }
  return { id, file, body, lineOf: lineOfField }
}

/** Component in which a scanner found the vulnerability most recently. */
function componentOf(events: readonly Event[]): object {
  type Scan = { component?: string; componentType?: string; componentLocation?: string }
  const scans = events.flatMap((event) => {
    const scan = (event.detection as { scanv1?: Scan } | undefined)?.scanv1
    return scan ? [{ time: Date.parse(event.createTime), scan }] : []
  })
  if (scans.length === 0) return {}
  const { scan } = scans.reduce((newest, one) => (one.time >= newest.time ? one : newest))
  const { component = '', componentType = '', componentLocation = '' } = scan
  return { componentName: component, componentType, componentLocation }
}

function eventOf(node: Node, path: string, author: string): Event {
  const map = mapOf(node, path)
  checkMembers(map, path, ['timestamp', 'type', 'data'])
  const createTime = textAt(map, 'timestamp', path)
  if (!parseTimestamp(createTime)) {
    throw new Wrong(nodeAt(map, 'timestamp'), `${path}.timestamp`, 'is not a time such as 2026-08-01T12:00:00Z')
  }
  const type = textAt(map, 'type', path)
  const read = kinds[type]
  if (!read) throw new Wrong(nodeAt(map, 'type'), `${path}.type`, `must be one of ${Object.keys(kinds).join(', ')}`)
  const data = nodeAt(map, 'data')
  return { createTime, author, reviewState: 'REVIEW_STATE_APPROVED', ...read(data, `${path}.data`) }
}

const noteOnly = (member: string) => (data: Node | null, path: string) => {
  return { [member]: isEmpty(data) ? {} : texts(mapOf(data, path), path, { note: 'note' }) }
}

const kinds: Record<string, (data: Node | null, path: string) => object> = {
  detection: (data, path) => ({ detection: detectionOf(mapOf(data, path), path) }),
  fixed: (data, path) => ({ fixed: texts(mapOf(data, path), path, { 'fixed-version': 'fixedVersion', note: 'note' }) }),
  'false-positive-determination': (data, path) => {
    const { type, ...rest } = texts(mapOf(data, path), path, { type: 'type', note: 'note' })
    return {
      falsePositiveDetermination: {
        ...rest,
        type: `TYPE_${(type ?? 'unspecified').toUpperCase().replaceAll('-', '_')}`,
      },
    }
  },
  'true-positive-determination': noteOnly('truePositiveDetermination'),
  'fix-not-planned': noteOnly('fixNotPlanned'),
  'analysis-not-planned': noteOnly('analysisNotPlanned'),
  'pending-upstream-fix': noteOnly('pendingUpstreamFix'),
}

const scanMembers = {
  scanner: 'scanner',
  subpackageName: 'subpackage',
  componentID: 'componentId',
  componentName: 'component',
  componentVersion: 'componentVersion',
  componentType: 'componentType',
  componentLocation: 'componentLocation',
}

function detectionOf(map: YAMLMap, path: string): object {
  checkMembers(map, path, ['type', 'data'])
  const type = textAt(map, 'type', path)
  const data = nodeAt(map, 'data')
  const at = `${path}.data`
  if (type === 'manual') return { manual: {} }
  if (type === 'nvdapi')
    return { nvdapi: texts(mapOf(data, at), at, { cpeSearched: 'cpeSearched', cpeFound: 'cpeFound' }) }
  if (type === 'scan/v1') return { scanv1: texts(mapOf(data, at), at, scanMembers) }
  throw new Wrong(nodeAt(map, 'type'), `${path}.type`, 'must be one of scan/v1, nvdapi, manual')
}

/** Renames the members of a map. */
function texts(map: YAMLMap, path: string, names: Record<string, string>): Record<string, string> {
  checkMembers(map, path, Object.keys(names))
  return Object.fromEntries(
    map.items.map(({ key, value }) => {
      const name = scalarOf(key as Node, path)
      return [names[name]!, scalarOf(value as Node | null, `${path}.${name}`)]
    }),
  )
}

function checkMembers(map: YAMLMap, path: string, known: readonly string[]): void {
  for (const { key } of map.items) {
    const name = scalarOf(key as Node, path)
    if (!known.includes(name)) throw new Wrong(key as Node, join(path, name), 'is not a known member')
  }
}

function textAt(map: YAMLMap, member: string, path: string): string {
  const node = nodeAt(map, member)
  const text = node === null ? '' : scalarOf(node, join(path, member))
  if (text === '') throw new Wrong(node ?? map, join(path, member), 'is required')
  return text
}

function nodeAt(map: YAMLMap, member: string): Node | null {
  return (map.get(member, true) as Node | undefined) ?? null
}

function mapOf(node: Node | null, path: string): YAMLMap {
  if (!isMap(node)) throw new Wrong(node, path, 'must be a map')
  return node
}

function itemsOf(node: Node | null, path: string): Node[] {
  if (isEmpty(node)) return []
  if (!isSeq(node)) throw new Wrong(node, path, 'must be a list')
  return node.items as Node[]
}

function scalarOf(node: Node | null, path: string): string {
  if (node === null) return ''
  if (!isScalar(node)) throw new Wrong(node, path, 'must be a string')
  return String(node.value ?? '')
}

function isEmpty(node: Node | null): boolean {
  return node === null || (isScalar(node) && (node.value === '' || node.value === null))
}

function join(path: string, member: string): string {
  return path === '' ? member : `${path}.${member}`
}

function firstLine(text: string): string {
  if (text.startsWith('Maximum call stack')) return 'is nested too deeply'
  return text.split('\n')[0]!.replace(/ at line \d+.*$/, '')
}
