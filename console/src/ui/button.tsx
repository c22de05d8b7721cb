// Button with all of its states. Plain buttons without them are `<button>`.
import type { ComponentChildren } from 'preact'
import { Icon, type IconName } from './icon.tsx'

type Props = {
  children: ComponentChildren
  kind?: 'default' | 'primary' | 'ghost' | 'danger'
  icon?: IconName
  isSmall?: boolean
  /** True while the action runs. The button keeps its size and ignores clicks. */
  isBusy?: boolean
  /** Reason why the action is not available. The button can have the focus, so that everyone can read the reason. */
  disabledReason?: string
  onClick?: () => void
}

export function Button({ children, kind = 'default', icon, isSmall, isBusy = false, disabledReason, onClick }: Props) {
  const isOff = disabledReason !== undefined
  return (
    <button
      type="button"
      class={`${kind === 'default' ? '' : kind}${isSmall ? ' small' : ''}`}
      title={disabledReason}
      aria-disabled={isOff || isBusy ? 'true' : undefined}
      aria-busy={isBusy ? 'true' : undefined}
      onClick={isOff || isBusy ? undefined : onClick}
    >
      {icon !== undefined && <Icon name={isBusy ? 'time' : icon} />}
      {children}
      {isOff && <span class="unseen">: {disabledReason}</span>}
    </button>
  )
}
