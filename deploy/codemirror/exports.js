// What the page uses of CodeMirror (app/web).

export { history, invertedEffects, isolateHistory, redo, standardKeymap, undo } from "@codemirror/commands";
export { search, searchKeymap } from "@codemirror/search";
export { EditorState, Prec, RangeSet, StateEffect, StateField, Text, Transaction } from "@codemirror/state";
export {
  Decoration,
  EditorView,
  gutterLineClass,
  GutterMarker,
  keymap,
  lineNumbers,
  MatchDecorator,
  placeholder,
  ViewPlugin,
  WidgetType,
} from "@codemirror/view";
