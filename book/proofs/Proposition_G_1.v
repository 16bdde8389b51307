(* Proposition G.1: counterfactual fairness for every head of a rich class implies HSIC = 0.
   The converse is false.

   Formalized: the proposition, the remark that the unit ball of an RKHS with a
   characteristic kernel is rich, and the XOR example against the converse.
   Weaker than the paper: S, the noise U_X and Z take finitely many values.
   Stronger: HSIC is zero for all kernels, characteristic or not.
   Hypotheses: S = U_S and U_X are independent with laws q and w; [rep s u] is
   h(f_X(s, u)), the representation of the unit u at the value s. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Proofs Require Import Finite.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* begin Proposition G.1 *)
Definition model (R : realFieldType) (Z S U : finType)
    (q : S -> R) (w : U -> R) (rep : S -> U -> Z) (z : Z) (s : S) : R :=
  \sum_u q s * w u * (rep s u == z)%:R.

(* The prediction of every unit that occurs is the same under every intervention on S. *)
Definition counterfactually_fair (R : realFieldType) (Z S U : finType)
    (q : S -> R) (w : U -> R) (rep : S -> U -> Z) (f : Z -> R) : Prop :=
  forall s u, q s != 0 -> w u != 0 -> forall s', f (rep s' u) = f (rep s u).

(* The means of the functions in F identify a law. *)
Definition rich (R : realFieldType) (Z : finType) (F : (Z -> R) -> Prop) : Prop :=
  forall P Q : Z -> R, law P -> law Q ->
    (forall f, F f -> mean P f = mean Q f) -> forall z, P z = Q z.

Theorem necessary (R : realFieldType) (Z S U : finType)
    (q : S -> R) (w : U -> R) (rep : S -> U -> Z) (F : (Z -> R) -> Prop) :
  law q -> law w -> rich F ->
  (forall f, F f -> counterfactually_fair q w rep f) ->
  independent (model q w rep)
  /\ forall k l, hsic k l (model q w rep) = 0.
(* end Proposition G.1 *)
Proof.
move=> [q0 q1] [w0 w1] rF fair; set p := model q w rep.
pose at_value s z := \sum_u w u * (rep s u == z)%:R.
have pE z s : p z s = q s * at_value s z.
  by rewrite /p /model mulr_sumr; apply: eq_bigr => u _; ring.
have sum_at s (f : Z -> R) : mean (at_value s) f = \sum_u w u * f (rep s u).
  rewrite /mean /at_value; under eq_bigr do rewrite mulr_suml.
  rewrite exchange_big; apply: eq_bigr => u _ /=.
  rewrite (bigD1 (rep s u)) //= eqxx mulr1 big1 ?addr0 // => z.
  by rewrite eq_sym => /negbTE ->; rewrite mulr0 mul0r.
have at_law s : law (at_value s).
  split=> [z|]; first by apply: sumr_ge0 => u _; rewrite mulr_ge0 ?ler0n.
  have := sum_at s (fun=> 1); rewrite /mean.
  by under eq_bigr do rewrite mulr1; move=> ->; under eq_bigr do rewrite mulr1.
have same s t z : q s != 0 -> at_value t z = at_value s z.
  move=> s0; apply: rF => // f Ff; rewrite !sum_at; apply: eq_bigr => u _.
  have [->|u0] := eqVneq (w u) 0; first by rewrite !mul0r.
  by rewrite (fair f Ff s u s0 u0 t).
have ind : independent p.
  move=> z s; rewrite /marginal_s; under eq_bigr do rewrite pE.
  rewrite -mulr_sumr (proj2 (at_law s)) mulr1 pE.
  have [->|s0] := eqVneq (q s) 0; first by rewrite mul0r mulr0.
  rewrite /marginal_z; under eq_bigr => t _ do rewrite pE (same s t z s0).
  by rewrite -mulr_suml q1 mul1r mulrC.
split=> // k l; rewrite /hsic /mmd2 /quad /form big1 // => a _; rewrite big1 // => b _.
by rewrite /joint /product -/p ind subrr !mul0r.
Qed.

(* begin Proposition G.1, unit balls *)
Theorem unit_ball_rich (R : realFieldType) (Z : finType) (k : Z -> Z -> R) :
  kernel k -> characteristic k -> rich (ball k 1).
(* end Proposition G.1, unit balls *)
Proof.
move=> kk ck P Q lP lQ same; apply: ck => //.
pose c z := P z - Q z; have m0 : 0 <= mmd2 k P Q by exact: (proj2 kk).
set m := mmd2 k P Q in m0 *.
have m1 : 0 < 1 + m by rewrite ltr_paddr // ltr01.
pose f z := (1 + m)^-1 * \sum_y c y * k z y.
have bf : ball k 1 f.
  move=> u; have := ball_span c kk u; rewrite -/(mmd2 k P Q) -/m => h.
  have -> : \sum_x u x * f x = (1 + m)^-1 * \sum_x u x * \sum_y c y * k x y.
    by rewrite mulr_sumr; apply: eq_bigr => x _; rewrite /f; ring.
  rewrite exprMn exprVn mul1r ler_pdivr_mull ?exprn_gt0 //.
  apply: le_trans h _; apply: ler_wpmul2r; first exact: (proj2 kk).
  rewrite -subr_ge0; have -> : (1 + m) ^+ 2 - m = 1 + m + m ^+ 2 by ring.
  by rewrite !addr_ge0 ?sqr_ge0 ?ler01.
have : mean P f - mean Q f = (1 + m)^-1 * m.
  have -> : (1 + m)^-1 * m = (1 + m)^-1 * \sum_x \sum_y c x * c y * k x y by [].
  rewrite /mean -sumrB mulr_sumr; apply: eq_bigr => x _.
  by rewrite -mulrBl /f mulrCA mulr_sumr; congr (_ * _); apply: eq_bigr => y _; rewrite /c; ring.
rewrite (same f bf) subrr => /esym /eqP; rewrite mulf_eq0 invr_eq0 gt_eqF //= => /eqP //.
Qed.

(* The hypotheses hold, for example, if the representation is the noise itself. *)
Example hypotheses_hold (R : realFieldType) :
  let half := fun _ : bool => 2%:R^-1 : R in
  [/\ law half, rich (ball (@equal R bool_finType) 1)
    & forall f, ball equal 1 f -> counterfactually_fair half half (fun _ u => u) f].
Proof.
split=> [| |f _ s u _ _ s'] //.
  by split=> [x|]; [rewrite invr_ge0 ler0n | rewrite big_bool /=; field].
apply: unit_ball_rich; first exact: equal_kernel.
by apply: strict_characteristic; exact: equal_strict.
Qed.

(* begin Proposition G.1, converse fails *)
(* S and U are fair coins and Z = S xor U: Z is independent of S, but no head that
   distinguishes the two values of Z is counterfactually fair. *)
Theorem converse_fails (R : realFieldType) (f : bool -> R) :
  let half := fun _ : bool => 2%:R^-1 : R in
  let p := model half half xorb in
  [/\ law half, forall k l, hsic k l p = 0
    & f true != f false -> ~ counterfactually_fair half half xorb f].
(* end Proposition G.1, converse fails *)
Proof.
move=> half p.
have h0 : half true != 0 by rewrite invr_eq0 pnatr_eq0.
split.
- by split=> [x|]; [rewrite invr_ge0 ler0n | rewrite big_bool /half /=; field].
- have pE z s : p z s = 4%:R^-1.
    by rewrite /p /model big_bool /half; case: s z => -[] /=; field.
  move=> k l; rewrite /hsic /mmd2 /quad /form big1 // => a _; rewrite big1 // => b _.
  rewrite /joint /product /marginal_z /marginal_s !big_bool !pE /=.
  by have -> : 4%:R^-1 - (4%:R^-1 + 4%:R^-1) * (4%:R^-1 + 4%:R^-1) = 0 :> R; [field | rewrite !mul0r].
- by move=> /eqP ft fair; apply: ft; have := fair false false h0 h0 true.
Qed.
