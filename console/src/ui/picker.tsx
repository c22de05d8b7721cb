// Picker: a field that searches for options while the user types.
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { words } from '../words.ts'
import { Icon } from './icon.tsx'
import { filterOptions, type Option } from './picker-options.ts'

type Props = {
  label: string
  hint?: string
  options: readonly Option[]
  value: string
  onChoose: (value: string) => void
  isLoading?: boolean
}

export function Picker({ label, hint, options, value, onChoose, isLoading = false }: Props) {
  const id = useId()
  const { typed, isOpen, at, shown, open, type, close, press } = useSearch(options, (one) => onChoose(one.value))
  const chosen = options.find((one) => one.value === value)
  const choose = (one: Option) => {
    onChoose(one.value)
    close()
  }
  const note = isLoading ? words.loading : shown.length === 0 ? words.nothingPicked(typed ?? '') : undefined
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <div class="picker">
        <input
          id={id}
          role="combobox"
          aria-expanded={isOpen}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={isOpen && shown.length > 0 ? `${id}-${at}` : undefined}
          aria-describedby={hint === undefined ? undefined : `${id}-hint`}
          autocomplete="off"
          spellcheck={false}
          placeholder={words.pickHint}
          value={typed ?? chosen?.label ?? ''}
          onClick={open}
          onInput={(event) => type((event.target as HTMLInputElement).value)}
          onKeyDown={press}
          onBlur={close}
        />
        <Icon name="open" />
        <Options {...{ id, label, isOpen, shown, at, note }} onChoose={choose} />
      </div>
      {hint !== undefined && (
        <span class="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
    </div>
  )
}

/** State of the list: the typed text, the matching options, and the active one. */
function useSearch(options: readonly Option[], onChoose: (option: Option) => void) {
  const [typed, setTyped] = useState<string>()
  const [isOpen, setOpen] = useState(false)
  const [at, setAt] = useState(0)
  const shown = filterOptions(options, typed ?? '')
  const open = () => setOpen(true)
  const close = () => {
    setOpen(false)
    setTyped(undefined)
  }
  const type = (text: string) => {
    setTyped(text)
    setOpen(true)
    setAt(0)
  }
  const move = (step: number) => {
    setAt(isOpen && shown.length > 0 ? (at + step + shown.length) % shown.length : 0)
    setOpen(true)
  }
  const keys: Record<string, () => void> = {
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    ...(isOpen && {
      Escape: close,
      Enter: () => {
        const one = shown[at]
        if (one) onChoose(one)
        close()
      },
    }),
  }
  const press = (event: KeyboardEvent) => {
    const act = keys[event.key]
    if (!act) return
    // A dialog around the picker stays open on Escape.
    event.preventDefault()
    event.stopPropagation()
    act()
  }
  return { typed, isOpen, at, shown, open, type, close, press }
}

type OptionsProps = {
  id: string
  label: string
  isOpen: boolean
  shown: readonly Option[]
  /** Position of the active option. */
  at: number
  /** Text instead of the options. */
  note: string | undefined
  onChoose: (option: Option) => void
}

/** List below the field. The focus stays in the field, so the options need no keys of their own. */
function Options({ id, label, isOpen, shown, at, note, onChoose }: OptionsProps) {
  const list = useRef<HTMLDivElement>(null)
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
  }, [at, isOpen])
  const keepFocus = (event: MouseEvent) => event.preventDefault()
  return (
    <div class="options" id={`${id}-list`} role="listbox" aria-label={label} ref={list} tabIndex={-1} hidden={!isOpen}>
      {note === undefined ? (
        shown.map((one, i) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys
          <div
            key={one.value}
            id={`${id}-${i}`}
            role="option"
            aria-selected={i === at}
            tabIndex={-1}
            onMouseDown={keepFocus}
            onClick={() => onChoose(one)}
          >
            <bdi>{one.label}</bdi>
            {one.description !== undefined && <span class="hint">{one.description}</span>}
          </div>
        ))
      ) : (
        <div class="none" role="option" aria-disabled="true" aria-selected="false" tabIndex={-1}>
          {note}
        </div>
      )}
    </div>
  )
}
