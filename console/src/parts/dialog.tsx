/** A native dialog: the rest of the page is inert while it is open, and Escape closes it. */
import { type FormEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { useWords } from '../words';
import { Icon } from './icons';
import { Failure } from './states';

type DialogProps = { title: string; onClose: () => void; children: ReactNode };

export function Dialog({ title, onClose, children }: DialogProps) {
  const words = useWords();
  const box = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = box.current;
    if (dialog && !dialog.open) dialog.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={box} aria-labelledby={id} onClose={onClose}>
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" className="quiet" onClick={onClose} aria-label={words.states.close}>
          <Icon name="close" />
        </button>
      </header>
      {children}
    </dialog>
  );
}

type ConfirmProps = DialogProps & {
  action: string;
  destroys?: boolean;
  /** A name to type before it may be done. */
  typed?: string;
  disabled?: boolean;
  /** Whether something else is shown in its place when it is done. */
  stays?: boolean;
  onConfirm: () => Promise<unknown>;
};

/** A dialog that does something: it says what, waits for it, and shows why it could not be done. */
export function Confirm({ title, onClose, children, onConfirm, stays, ...given }: ConfirmProps) {
  const { action, destroys, typed, disabled } = given;
  const words = useWords();
  const [said, setSaid] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await onConfirm();
      if (!stays) onClose();
    } catch (failure) {
      setError(failure as Error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={submit}>
        {children}
        {typed !== undefined && (
          <label className="field">
            <span>
              {words.states.typeToConfirm} <bdi className="typed">{typed}</bdi>
            </span>
            <input value={said} onChange={(event) => setSaid(event.target.value)} autoComplete="off" />
          </label>
        )}
        {error && <Failure error={error} />}
        <footer>
          <button type="button" onClick={onClose}>
            {words.states.cancel}
          </button>
          <button
            type="submit"
            className={destroys ? 'danger' : 'primary'}
            disabled={busy || disabled || (typed !== undefined && said !== typed)}
          >
            {action}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
