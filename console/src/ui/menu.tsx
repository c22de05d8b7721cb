// Menus: a button that opens a list of links and buttons. The browser closes it on Escape or on a click elsewhere, and then the
// button has the focus again.
import type { ComponentChildren } from 'preact'
import { useId, useRef } from 'preact/hooks'
import { Icon, type IconName } from './icon.tsx'

type MenuProps = {
  /** Text of the button, or its accessible name if it has an icon. */
  label: string
  icon?: IconName
  children: ComponentChildren
}

export function MenuButton({ label, icon, children }: MenuProps) {
  const id = useId()
  const button = useRef<HTMLButtonElement>(null)
  const menu = useRef<HTMLDivElement>(null)
  const place = () => placeBelow(menu.current!, button.current!.getBoundingClientRect())
  return (
    <>
      <button
        ref={button}
        type="button"
        class={icon === undefined ? '' : 'ghost icon-button small'}
        popovertarget={id}
        {...(icon !== undefined && { 'aria-label': label, title: label })}
      >
        {icon === undefined ? label : <Icon name={icon} />}
        {icon === undefined && <Icon name="open" />}
      </button>
      <Menu id={id} label={label} menuRef={menu} onOpen={place}>
        {children}
      </Menu>
    </>
  )
}

type PopoverProps = {
  id: string
  label: string
  menuRef?: { current: HTMLDivElement | null }
  onOpen?: () => void
  children: ComponentChildren
}

/** List of a menu, for a button with `popovertarget`. Choosing an item closes it. */
export function Menu({ id, label, menuRef, onOpen, children }: PopoverProps) {
  const own = useRef<HTMLDivElement>(null)
  const menu = menuRef ?? own
  // The first item gets the focus, so that arrow keys work at once.
  const toggled = ({ newState }: { newState: string }) => {
    if (newState !== 'open') return
    onOpen?.()
    menu.current!.querySelector<HTMLElement>('a, button')?.focus()
  }
  const close = (event: MouseEvent) => {
    if ((event.target as Element).closest('a, button')) (event.currentTarget as HTMLElement).hidePopover()
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: the items are the controls, also for the keyboard
    <div
      id={id}
      class="menu"
      popover="auto"
      role="group"
      aria-label={label}
      ref={menu}
      onToggle={toggled}
      onClick={close}
      onKeyDown={moveFocus}
    >
      {children}
    </div>
  )
}

/** Arrow keys, Home and End move the focus between the items. */
function moveFocus(event: KeyboardEvent): void {
  const items = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>('a, button')]
  const at = items.indexOf(document.activeElement as HTMLElement)
  const to = { ArrowDown: at + 1, ArrowUp: at < 0 ? -1 : at - 1, Home: 0, End: -1 }[event.key]
  if (to === undefined) return
  event.preventDefault()
  items.at(to % items.length)?.focus()
}

/** Places a menu below a button, or above it if there is no space below. */
function placeBelow(menu: HTMLElement, { left, right, top, bottom }: DOMRect): void {
  const gap = 4
  const isRight = left + menu.offsetWidth > innerWidth - gap
  const isAbove = bottom + gap + menu.offsetHeight > innerHeight && top > menu.offsetHeight
  menu.style.left = `${isRight ? Math.max(gap, right - menu.offsetWidth) : left}px`
  menu.style.top = `${isAbove ? top - gap - menu.offsetHeight : bottom + gap}px`
}

type ItemProps = { href?: string; icon?: IconName; isNow?: boolean; isDanger?: boolean; onClick?: () => void }

/** Link or button of a menu. `isNow` marks the current choice. */
export function MenuItem({
  href,
  icon,
  isNow,
  isDanger,
  onClick,
  children,
}: ItemProps & { children: ComponentChildren }) {
  const content = (
    <>
      {icon !== undefined && <Icon name={icon} />}
      <span>{children}</span>
      {isNow && <Icon name="check" />}
    </>
  )
  return (
    <li>
      {href === undefined ? (
        <button
          type="button"
          class={isDanger ? 'danger-item' : ''}
          onClick={onClick}
          {...(isNow !== undefined && { 'aria-pressed': isNow })}
        >
          {content}
        </button>
      ) : (
        <a href={href} aria-current={isNow ? 'true' : undefined}>
          {content}
        </a>
      )}
    </li>
  )
}
