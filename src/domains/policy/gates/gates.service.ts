// Gates of what is pulled: who may make them is decided before.
import type { Call } from '#app.ts'
import { emit } from '#domains/outbox/emit.ts'
import { groupOf, groupOfRow, limitReached, listBelow } from '#domains/rules/places.service.ts'
import { type FieldViolation, found, refuseIfAny } from '#lib/errors.ts'
import { aDeletion } from '#lib/events/event-body.ts'
import { applyPatch, type Patch, snakeCase, violationsOf } from '#lib/fields.ts'
import type { Listed, Page } from '#lib/lists/paging.ts'
import { newUid, rootOf } from '#lib/uid.ts'
import {
  aGate,
  anyVulnerability,
  type Gate,
  type GateRule,
  type GateText,
  gateFields,
  gateType,
  kinds,
  maxDays,
  maxExemptDays,
  maxMonths,
  mostGates,
  type UnknownSeverity,
} from './gates.model.ts'
import * as store from './gates.store.ts'

/** Throws NOT_FOUND for a place that is not there. */
export async function createGate(call: Call, scope: string, text: GateText): Promise<Gate> {
  const times = { createTime: call.now, updateTime: call.now }
  const gate: Gate = { uid: newUid(scope), scopeUid: scope, ...times, ...readGate(text) }
  await call.app.db.tx(async (tx) => {
    const group = await groupOf(tx, scope)
    const there = await store.gateList.below(tx, rootOf(scope), {}, mostGates)
    if (there.length >= mostGates) throw limitReached('gates', mostGates, there.length)
    await store.insertGate(tx, group, gate)
    await emit(tx, call, 'control.scanning.gate.created', { subject: gate.uid, group, resource: aGate(gate) })
  })
  call.log.info('gate created', { uid: gate.uid })
  return gate
}

export async function updateGate(call: Call, uid: string, patch: Patch<GateText>): Promise<Gate> {
  const gate = await call.app.db.tx(async (tx) => {
    const before = found(await store.findGate(tx, uid), gateType, uid)
    const text = applyPatch<GateText>(gateFields, patchable(textOf(before), patch), patch)
    const after: Gate = { ...before, ...readGate(text, keptSeverity(before)), updateTime: call.now }
    await store.patchGate(tx, after)
    const group = await groupOfRow(tx, before)
    await emit(tx, call, 'control.scanning.gate.updated', { subject: uid, group, resource: aGate(after) })
    return after
  })
  call.log.info('gate updated', { uid, paths: patch.paths })
  return gate
}

export async function deleteGate(call: Call, uid: string): Promise<void> {
  await call.app.db.tx(async (tx) => {
    const gate = found(await store.findGate(tx, uid), gateType, uid)
    await store.deleteGate(tx, uid)
    const group = await groupOfRow(tx, gate)
    await emit(tx, call, 'control.scanning.gate.deleted', { subject: uid, group, resource: aDeletion({ uid }) })
  })
  call.log.info('gate deleted', { uid })
}

export async function getGate(call: Call, uid: string): Promise<Gate> {
  return found(await store.findGate(call.app.db, uid), gateType, uid)
}

/** A page of those at and below the place, or all places that the caller may look at. */
export async function listGates(call: Call, page: Page, scope: string): Promise<Listed<Gate>> {
  return listBelow(call, page, scope, store.gateList, {})
}

/** A gate as it is written. */
export function textOf({ name, mode, rule, exemptPulledDays }: Gate): GateText {
  const { kind, ...said } = rule
  return { name, mode, exemptPulledDays, ...noRule, [kind]: said }
}

/** What a patch is applied to: another kind of rule takes the place of the one that was there. */
function patchable(text: GateText, { paths, value }: Patch<GateText>): GateText {
  const heads = paths.map((path) => path.split('.')[0])
  const set = kinds.find((kind) => value[kind] !== undefined && heads.includes(snakeCase(kind)))
  return set ? { ...text, ...noRule, [set]: text[set] } : text
}

const noRule = { vulnerabilities: undefined, endOfLife: undefined, cooldown: undefined, supportWindow: undefined }

/** An update that does not name how unknown severities count keeps the value, so that a stored gate keeps its results. */
const keptSeverity = ({ rule }: Gate): UnknownSeverity | undefined =>
  rule.kind === 'vulnerabilities' ? rule.unknownSeverity : undefined

function readGate(given: GateText, kept?: UnknownSeverity): Pick<Gate, 'name' | 'mode' | 'rule' | 'exemptPulledDays'> {
  const text = whole(given, kept ?? anyVulnerability.unknownSeverity)
  const problems: FieldViolation[] = violationsOf(gateFields, text)
  const between = (field: string, value: number | undefined, least: number, most: number) => {
    if (value === undefined || (value >= least && value <= most)) return
    problems.push({ field, description: `must be from ${least} to ${most}` })
  }
  between('vulnerabilities.after_days', text.vulnerabilities?.afterDays, 0, maxDays)
  between('cooldown.min_age_days', text.cooldown?.minAgeDays, 1, maxDays)
  between('support_window.min_months_left', text.supportWindow?.minMonthsLeft, 1, maxMonths)
  between('exempt_pulled_days', text.exemptPulledDays, 0, maxExemptDays)
  if (text.cooldown && text.exemptPulledDays > 0) {
    problems.push({ field: 'exempt_pulled_days', description: 'cannot be given with `cooldown`' })
  }
  const kind = kinds.find((one) => text[one] !== undefined)
  if (!kind) {
    const names = kinds.map((one) => `\`${snakeCase(one)}\``).join(', ')
    problems.push({ field: 'vulnerabilities', description: `one of ${names} is required` })
  }
  refuseIfAny(problems)
  const rule = { kind, ...text[kind!] } as GateRule
  return { name: text.name, mode: text.mode, exemptPulledDays: text.exemptPulledDays, rule }
}

/** A patch of a part of a rule leaves the others as they are where nothing was said. */
function whole(text: GateText, kept: UnknownSeverity): GateText {
  const { vulnerabilities, cooldown, supportWindow } = text
  return {
    ...text,
    vulnerabilities: vulnerabilities && {
      ...{ ...anyVulnerability, ...vulnerabilities },
      unknownSeverity: vulnerabilities.unknownSeverity ?? kept,
    },
    cooldown: cooldown && { ...{ minAgeDays: 0 }, ...cooldown },
    supportWindow: supportWindow && { ...{ minMonthsLeft: 0 }, ...supportWindow },
  }
}
