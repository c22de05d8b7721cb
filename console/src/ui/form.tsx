// Forms and dialogs. A form is a list of fields. It shows the errors of its own action.
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { words } from '../words.ts'
import { Icon } from './icon.tsx'
import { Problem } from './states.tsx'

export type Field = {
  name: string
  label: string
  hint?: string
  type?: 'text' | 'search' | 'number' | 'email' | 'url' | 'password' | 'datetime-local' | 'select' | 'lines' | 'check'
  value?: string
  isOptional?: boolean
  pattern?: string
  options?: readonly { value: string; label: string }[]
}

type Values = Record<string, string>
type Props = {
  fields: readonly Field[]
  submit: string
  /** Called with the typed texts, without surrounding spaces. The form shows errors that this function throws. */
  onSubmit: (values: Values) => Promise<void> | void
  children?: ComponentChildren
  isDanger?: boolean
  /** All fields are on one line, as in filters. */
  isLine?: boolean
}

export function Form({ fields, submit, onSubmit, children, isDanger = false, isLine = false }: Props) {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const send = async (event: SubmitEvent) => {
    event.preventDefault()
    const data = new FormData(event.target as HTMLFormElement)
    const values = Object.fromEntries(fields.map(({ name }) => [name, String(data.get(name) ?? '').trim()]))
    setBusy(true)
    setError(undefined)
    try {
      await onSubmit(values)
    } catch (cause) {
      setError(cause)
    }
    setBusy(false)
  }
  return (
    <form class={isLine ? 'line' : 'form'} onSubmit={send}>
      {fields.map((field) => (
        <Input key={field.name} field={field} />
      ))}
      {children}
      {error !== undefined && <Problem error={error} />}
      <p class="actions">
        <button type="submit" class={isDanger ? 'danger' : 'primary'} disabled={isBusy}>
          {submit}
        </button>
      </p>
    </form>
  )
}

function Input({ field }: { field: Field }) {
  const id = useId()
  const { name, label, hint, type = 'text', value = '', isOptional = false, pattern, options = [] } = field
  const common = { id, name, required: !isOptional, ...(hint && { 'aria-describedby': `${id}-hint` }) }
  return (
    <p class="field">
      <label for={id}>{label}</label>
      {type === 'select' ? (
        <select {...common} value={value}>
          {options.map((one) => (
            <option key={one.value} value={one.value} selected={one.value === value}>
              {one.label}
            </option>
          ))}
        </select>
      ) : type === 'lines' ? (
        <textarea {...common} rows={4} defaultValue={value} spellcheck={false} />
      ) : type === 'check' ? (
        <input {...common} type="checkbox" required={false} value="yes" defaultChecked={value === 'yes'} />
      ) : (
        <input
          {...common}
          // Preact has a different event type for each kind of input.
          type={type as 'text'}
          defaultValue={value}
          {...(pattern !== undefined && { pattern })}
          autocomplete={type === 'password' ? 'new-password' : 'off'}
          spellcheck={false}
        />
      )}
      {hint && (
        <span class="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
    </p>
  )
}

/** Modal dialog. The focus stays in the dialog. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  title: string
  onClose: () => void
  children: ComponentChildren
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    dialog.current?.showModal()
    // The browser would choose the button that closes the dialog.
    dialog.current?.querySelector<HTMLElement>('.dialog-body :is(input, select, textarea, button)')?.focus()
  }, [])
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={onClose}>
      <div class="dialog-head">
        <h2 id={id}>{title}</h2>
        <form method="dialog">
          <button type="submit" class="ghost icon-button" aria-label={words.close} title={words.close}>
            <Icon name="close" />
          </button>
        </form>
      </div>
      <div class="dialog-body">{children}</div>
    </dialog>
  )
}

type DialogButtonProps = { button: string; title: string; children: (close: () => void) => ComponentChildren }

/** Button that opens a dialog. The content is created when the dialog opens. */
export function DialogButton({ button, title, children }: DialogButtonProps) {
  const [isOpen, setOpen] = useState(false)
  const close = () => setOpen(false)
  return (
    <>
      <button type="button" class="small" aria-label={title} onClick={() => setOpen(true)}>
        {button}
      </button>
      {isOpen && (
        <Dialog title={title} onClose={close}>
          {children(close)}
        </Dialog>
      )}
    </>
  )
}

type Danger = {
  button: string
  title: string
  text: string
  mustType?: string
  label?: string
  act: () => Promise<void>
}

/** Button for an action that cannot be undone. A dialog asks for confirmation. With `mustType`, the user must type this text. */
export function DangerButton({ button, title, text, mustType, label, act }: Danger) {
  const [isOpen, setOpen] = useState(false)
  const done = async ({ typed }: Values) => {
    // A browser without support for the pattern accepts any text.
    if (mustType !== undefined && typed !== mustType.trim()) return
    await act()
    setOpen(false)
  }
  const fields: Field[] =
    mustType === undefined ? [] : [{ name: 'typed', label: words.typeName(mustType), pattern: escaped(mustType) }]
  return (
    <>
      <button type="button" class="small" aria-label={label ?? button} onClick={() => setOpen(true)}>
        {button}
      </button>
      {isOpen && (
        <Dialog title={title} onClose={() => setOpen(false)}>
          <p>{text}</p>
          <Form fields={fields} submit={button} isDanger onSubmit={done} />
        </Dialog>
      )}
    </>
  )
}

/** Escapes only special characters, since browsers reject a pattern with any other escape. */
const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')

type Ask = {
  button: string
  label: string
  fields: readonly Field[]
  act: (values: Values) => Promise<void>
}

/** Button that opens a form in a dialog. `button` is the text of the button, and `label` the title of the dialog. */
export function FormButton({ button, label, fields, act }: Ask) {
  const [isOpen, setOpen] = useState(false)
  const done = async (values: Values) => {
    await act(values)
    setOpen(false)
  }
  return (
    <>
      <button type="button" class="small" aria-label={label} onClick={() => setOpen(true)}>
        {button}
      </button>
      {isOpen && (
        <Dialog title={label} onClose={() => setOpen(false)}>
          <Form fields={fields} submit={button} onSubmit={done} />
        </Dialog>
      )}
    </>
  )
}

/** Button for an action without confirmation. An error is shown beside the button. */
export function ActButton({ children, label, act }: { children: string; label?: string; act: () => Promise<void> }) {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const run = async () => {
    setBusy(true)
    setError(undefined)
    await act().catch(setError)
    setBusy(false)
  }
  return (
    <>
      <button type="button" class="small" aria-label={label ?? children} disabled={isBusy} onClick={run}>
        {children}
      </button>
      {error !== undefined && <Problem error={error} />}
    </>
  )
}
