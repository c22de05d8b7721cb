// Lists of resources that apply in a scope, such as policies. A list has those of the scope, inherited ones, and those below.
// Forms create and change them.
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { paths } from '../../app/paths.ts'
import { here } from '../../app/route.ts'
import { can, isKnown } from '../../app/session.ts'
import { ask, type Query } from '../../data/api.ts'
import { parentOf, pathNamesOf } from '../../data/names.ts'
import type { CapabilityName } from '../../data/rights.ts'
import { readScoped, type Scoped, type ScopeParam, whereOf } from '../../data/scoped.ts'
import type { Group } from '../../data/types.ts'
import { DangerButton, DialogButton, type Field, Form, FormButton } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Empty, Note, Shown, Waiting } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Breakable } from '../../ui/text.tsx'
import { ruleWords } from '../../words/rules.ts'
import { words } from '../../words.ts'

export type Values = Record<string, string>
/** A group or a repository, with the groups above it that the user can see. */
export type At = { uid: string; groups: readonly Group[] }

/** `at` is the uid of the group or the repository of the resource. */
export type FormProps<T> = { at: string; item?: T; onDone: () => void }

/** Kind of resource that belongs to a group or repo. */
export type Kind<T extends Scoped> = {
  title: string
  empty: string
  path: string
  member: string
  scopeParam?: ScopeParam
  query?: Query
  columns: readonly Column<T>[]
  /** Capability to create, change and end a resource of this kind. Default: `registry.settings.update`. */
  needs?: { create: CapabilityName; update?: CapabilityName; end: CapabilityName }
  /** Title of a resource of this kind. */
  nameOf: (item: T) => string
  create: {
    summary: string
    button: string
    fields: (item?: T) => readonly Field[]
    send: (at: string, values: Values) => Promise<void>
  }
  /** Form for a new resource or a change, instead of the fields above. It calls `onDone` after the request. */
  form?: (props: FormProps<T>) => ComponentChildren
  /** Further buttons for a resource that can be changed. */
  actions?: (item: T, reload: () => void) => ComponentChildren
  /** Sends the request that changes a resource. Undefined if resources of this kind cannot be changed. */
  update?: (item: T, values: Values) => Promise<void>
  /** Sends the request that ends a resource. */
  end: { button: string; text: string; send: (item: T) => Promise<void>; isOver?: (item: T) => boolean }
}

const ofSettings: CapabilityName = 'registry.settings.update'
const toRead: CapabilityName = 'registry.rules.list'

/** Checks whether the user can change or end resources of this kind in a scope. */
function canAct<T extends Scoped>({ needs, update }: Kind<T>, at: string): boolean {
  return can(needs?.end ?? ofSettings, at) || (update !== undefined && can(needs?.update ?? ofSettings, at))
}

export function ScopedList<T extends Scoped>({ kind, at }: { kind: Kind<T>; at: At }) {
  const { title, path, member, scopeParam, query = {} } = kind
  const [made, setMade] = useState(0)
  const [isOpen, setOpen] = useState(false)
  const read = useLoad(`${path} ${at.uid} ${JSON.stringify(query)}`, (signal) =>
    readScoped<T>(path, member, { scope: at.uid, scopeParam, query, signal }),
  )
  const done = () => {
    setMade(made + 1)
    setOpen(false)
    read.reload()
  }
  const create = async (values: Values) => {
    await kind.create.send(at.uid, values)
    done()
  }
  return (
    <>
      <h2>{title}</h2>
      <Shown of={read}>
        {({ items, isCut }) => (
          <>
            {isCut && <Note kind="warn">{ruleWords.cutList}</Note>}
            {items.length === 0 ? (
              <Empty>{kind.empty}</Empty>
            ) : (
              <Table
                caption={title}
                items={items}
                keyOf={({ uid }) => uid}
                columns={[
                  ...kind.columns,
                  whereColumn(at),
                  ...(canAct(kind, at.uid) ? [actionsColumn(kind, at, read.reload)] : []),
                ]}
              />
            )}
          </>
        )}
      </Shown>
      {can(kind.needs?.create ?? ofSettings, at.uid) && (
        <details key={made} onToggle={(event) => setOpen((event.target as HTMLDetailsElement).open)}>
          <summary>{kind.create.summary}</summary>
          {kind.form ? (
            isOpen && <kind.form at={at.uid} onDone={done} />
          ) : (
            <Form submit={kind.create.button} onSubmit={create} fields={kind.create.fields()} />
          )}
        </details>
      )}
    </>
  )
}

const whereColumn = <T extends Scoped>(at: At): Column<T> => ({
  title: words.scope,
  cell: ({ uid }) => {
    const where = whereOf(uid, at.uid)
    if (where === 'here') return words.here
    if (where === 'below') return <ScopeLink uid={parentOf(uid)} />
    const above = at.groups.find((one) => one.uid === parentOf(uid))
    return above ? words.inheritedFrom(above.name) : words.inherited
  },
})

/** Link to a group or a repository, with its names as text. */
function ScopeLink({ uid }: { uid: string }) {
  const read = useLoad(`scope ${uid}`, () => pathNamesOf(uid))
  if (!read.data) return <code title={uid}>{uid.slice(-16)}</code>
  const { names, isRepo } = read.data
  return (
    <a href={isRepo ? paths.repo(names) : paths.group(names)}>
      <Breakable text={names.join('/')} />
    </a>
  )
}

const actionsColumn = <T extends Scoped>(kind: Kind<T>, at: At, reload: () => void): Column<T> => ({
  title: words.actions,
  cell: (item) => {
    const { nameOf, create, update, end, needs, form: OwnForm } = kind
    // An inherited rule can be changed only in its own group, with permission there.
    if (whereOf(item.uid, at.uid) === 'above' || end.isOver?.(item)) return null
    const name = nameOf(item)
    return (
      <>
        {update && can(needs?.update ?? ofSettings, item.uid) && kind.actions?.(item, reload)}{' '}
        {update && can(needs?.update ?? ofSettings, item.uid) && OwnForm && (
          <DialogButton button={words.edit} title={words.editOf(name)}>
            {(close) => (
              <OwnForm
                {...{ at: parentOf(item.uid), item }}
                onDone={() => {
                  close()
                  reload()
                }}
              />
            )}
          </DialogButton>
        )}
        {update && can(needs?.update ?? ofSettings, item.uid) && !OwnForm && (
          <FormButton
            button={words.edit}
            label={words.editOf(name)}
            fields={create.fields(item)}
            act={async (values) => {
              await update(item, values)
              reload()
            }}
          />
        )}{' '}
        {can(needs?.end ?? ofSettings, item.uid) && (
          <DangerButton
            button={end.button}
            label={ruleWords.actionOn(end.button, name)}
            title={ruleWords.actionOn(end.button, name)}
            text={end.text}
            act={async () => {
              await end.send(item)
              reload()
            }}
          />
        )}
      </>
    )
  },
})

type ForProps = { at: At; needs?: CapabilityName; children: ComponentChildren }

/** Shows content that needs a capability. Without the capability, shows a message. */
export function WithPermission({ at, needs = toRead, children }: ForProps) {
  if (!isKnown()) return <Waiting />
  if (!can(needs, at.uid)) return <Empty>{ruleWords.rulesHidden}</Empty>
  const isAllSeen = can(needs, at.uid.split('/')[0])
  return (
    <>
      {!isAllSeen && <Note kind="warn">{ruleWords.rulesAboveHidden}</Note>}
      {children}
    </>
  )
}

type RulesProps = {
  at: At
  query: URLSearchParams
  text: string
  needs?: CapabilityName
  /** Renders the lists. `query` is for resources that can expire or be revoked. */
  children: (asked: { query: Query }) => ComponentChildren
}

/** Lists with an introduction. A parameter of the address includes expired and revoked entries. */
export function Rules({ at, query, text, needs = ofSettings, children }: RulesProps) {
  const isOn = query.get('ended') === 'yes'
  return (
    <WithPermission at={at} needs={needs}>
      <Note>{text}</Note>
      {children({ query: { includeEnded: isOn } })}
      <p>
        <a href={paths.with(here(), { ended: isOn ? undefined : 'yes' })}>
          {isOn ? ruleWords.hideEnded : ruleWords.showEnded}
        </a>
      </p>
    </WithPermission>
  )
}

/** Members that differ from the loaded resource. Others are not sent, since somebody else may have changed them since. */
const changedMembers = (item: object, body: object): object => {
  const before = new Map(Object.entries(item).map(([name, value]) => [name, JSON.stringify(value)]))
  return Object.fromEntries(Object.entries(body).filter(([name, value]) => before.get(name) !== JSON.stringify(value)))
}

/** Requests that create, change and delete a resource. */
export const sendTo = (path: string) => ({
  create: (bodyOf: (values: Values) => object) => async (at: string, values: Values) => {
    await ask('POST', `${path}/${at}`, { body: bodyOf(values) })
  },
  update: (bodyOf: (values: Values) => object) => async (item: Scoped, values: Values) => {
    await ask('PATCH', `${path}/${item.uid}`, { body: changedMembers(item, bodyOf(values)) })
  },
  delete: async ({ uid }: Scoped) => {
    await ask('DELETE', `${path}/${uid}`)
  },
})

export const linesOf = (text = ''): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')

/** Two fields for included and excluded tags. */
export const tagFields = (item?: { tags: readonly string[]; exceptTags: readonly string[] }): Field[] => [
  {
    name: 'tags',
    label: ruleWords.ruleTags,
    hint: ruleWords.patternHint,
    type: 'lines',
    value: item?.tags.join('\n') ?? '',
    isOptional: true,
  },
  {
    name: 'exceptTags',
    label: ruleWords.ruleExcept,
    type: 'lines',
    value: item?.exceptTags.join('\n') ?? '',
    isOptional: true,
  },
]

export const tagsColumn: Column<{ tags: readonly string[]; exceptTags?: readonly string[] }> = {
  title: words.tags,
  cell: ({ tags, exceptTags = [] }) => <bdi>{ruleWords.tagsOfRule(tags.join(', '), exceptTags.join(', '))}</bdi>,
}
