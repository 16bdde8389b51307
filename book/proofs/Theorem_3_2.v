(* Theorem 3.2 and Corollary 3.4: disintegration of the joint IPM, and decomposable classes.

   Formalized: the theorem for any class F of functions; the corollary with the
   selectors of the paper as a hypothesis.
   Weaker than the paper: Z and S take finitely many values, so every function is
   bounded and measurable.
   A supremum is a relation here ([ipm F P Q v]: "the IPM is v"), because an
   ordered field need not have it. Over the real numbers a bounded class has one.
   Not used in the proof of the corollary: the symmetry of V, because the
   assumption on the selectors already contains it.
   The last theorem is the case of total variation, where all hypotheses hold. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Proofs Require Import Finite.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Disintegration.
Variables (R : realFieldType) (Z S : finType) (p : Z -> S -> R).

(* begin Theorem 3.2 *)
(* The average over s of the contrast  int f(z, s) d(P_{Z|S=s} - P_Z)(z). *)
Definition averaged_contrast (f : Z * S -> R) : R :=
  \sum_s marginal_s p s
    * (\sum_z f (z, s) * conditional p s z - \sum_z f (z, s) * marginal_z p z).

Theorem disintegration (F : (Z * S -> R) -> Prop) (v : R) :
  joint_law p ->
  ipm F (joint p) (product p) v
  <-> least_bound (fun a => exists2 f, F f & a = `|averaged_contrast f|) v.
(* end Theorem 3.2 *)
Proof.
move=> p_law.
have e f : mean (joint p) f - mean (product p) f = averaged_contrast f.
  rewrite (mean_contrast p_law); apply: eq_bigr => s _; congr (_ * _).
  by rewrite -sumrB; apply: eq_bigr => z _; rewrite /deviation; ring.
split=> -[v0 ub lub]; split=> //.
- by move=> a [f Ff ->]; apply: ub; exists f => //; rewrite e.
- by move=> u u0 h; apply: lub => // a [f Ff ->]; apply: h; exists f => //; rewrite e.
- by move=> a [f Ff ->]; apply: ub; exists f => //; rewrite e.
- by move=> u u0 h; apply: lub => // a [f Ff ->]; apply: h; exists f => //; rewrite e.
Qed.

(* begin Corollary 3.4 *)
(* Definition 3.3; "almost every s" means every s of positive probability. *)
Definition decomposable (V : (Z -> R) -> Prop) (F : (Z * S -> R) -> Prop) : Prop :=
  (forall g : S -> Z -> R, (forall s, V (g s)) -> F (fun a => g a.2 a.1))
  /\ (forall f, F f -> forall s, marginal_s p s != 0 -> V (fun z => f (z, s))).

Theorem recovery (V : (Z -> R) -> Prop) (F : (Z * S -> R) -> Prop) (d : S -> R) :
  joint_law p -> decomposable V F ->
  (forall s, marginal_s p s != 0 -> ipm V (conditional p s) (marginal_z p) (d s)) ->
  (forall e, 0 < e -> exists2 g : S -> Z -> R, forall s, V (g s)
     & forall s, marginal_s p s != 0 ->
         d s - e <= mean (conditional p s) (g s) - mean (marginal_z p) (g s)) ->
  ipm F (joint p) (product p) (\sum_s marginal_s p s * d s).
(* end Corollary 3.4 *)
Proof.
move=> p_law [selectors slices] dV nearly.
have p0 := marginal_s_ge0 p_law.
have contrast s (f : Z -> R) :
    \sum_z deviation p s z * f z = mean (conditional p s) f - mean (marginal_z p) f.
  by rewrite /mean -sumrB; apply: eq_bigr => z _; rewrite /deviation; ring.
split.
- apply: sumr_ge0 => s _; have [->|s0] := eqVneq (marginal_s p s) 0; first by rewrite mul0r.
  by rewrite mulr_ge0 //; case: (dV s s0).
- move=> a [f Ff ->]; rewrite (mean_contrast p_law).
  apply: le_trans (ler_norm_sum _ _ _) _; apply: ler_sum => s _.
  rewrite normrM ger0_norm //.
  have [->|s0] := eqVneq (marginal_s p s) 0; first by rewrite !mul0r.
  apply: ler_wpmul2l => //; rewrite (contrast s (fun z => f (z, s))).
  by case: (dV s s0) => _ ub _; apply: ub; exists (fun z => f (z, s)) => //; exact: slices.
- move=> u u0 ub; apply/ler_addgt0Pr => e e0; have [g Vg ge] := nearly e e0.
  have := ub _ (ex_intro2 _ _ _ (selectors g Vg) erefl).
  move/(le_trans (ler_norm _)); rewrite (mean_contrast p_law) /= => h.
  rewrite -ler_subl_addr; apply: le_trans h.
  rewrite -[X in _ - X <= _]mulr1 -{1}(marginal_s_sum p_law) mulr_sumr -sumrB.
  apply: ler_sum => s _; rewrite [e * _]mulrC -mulrBr.
  have [->|s0] := eqVneq (marginal_s p s) 0; first by rewrite !mul0r.
  by apply: ler_wpmul2l => //; rewrite contrast; exact: ge.
Qed.

(* begin Corollary 3.4, total variation *)
(* With all functions bounded by one, the joint IPM is the average of the L1 distances. *)
Theorem recovery_total_variation :
  joint_law p ->
  ipm (fun f : Z * S -> R => forall a, `|f a| <= 1) (joint p) (product p)
    (\sum_s marginal_s p s * \sum_z `|conditional p s z - marginal_z p z|).
(* end Corollary 3.4, total variation *)
Proof.
move=> p_law.
have contrast s (f : Z -> R) :
    mean (conditional p s) f - mean (marginal_z p) f = \sum_z deviation p s z * f z.
  by rewrite /mean -sumrB; apply: eq_bigr => z _; rewrite /deviation; ring.
pose sgn s z : R := Num.sg (deviation p s z).
have sgn1 s z : `|sgn s z| <= 1 by rewrite normr_sg; case: (_ == 0) => /=; rewrite ?ler01 ?lexx.
have attained s : \sum_z deviation p s z * sgn s z = \sum_z `|conditional p s z - marginal_z p z|.
  by apply: eq_bigr => z _; rewrite mulrC -normrEsg.
apply: (@recovery (fun g => forall z, `|g z| <= 1)) => //.
- move=> s _; split; first by apply: sumr_ge0 => z _; exact: normr_ge0.
    move=> a [f Vf ->]; rewrite contrast; apply: le_trans (ler_norm_sum _ _ _) _.
    by apply: ler_sum => z _; rewrite normrM -[X in _ <= X]mulr1; apply: ler_wpmul2l.
  move=> u _ ub; have := ub _ (ex_intro2 _ _ _ (sgn1 s) erefl).
  by rewrite contrast attained; apply: le_trans; exact: ler_norm.
- move=> e e0; exists sgn => // s _; rewrite contrast attained.
  by rewrite ler_subl_addr ler_addl ltW.
Qed.

End Disintegration.

Example hypotheses_hold (R : realFieldType) : joint_law (@coin R).
Proof. exact: coin_law. Qed.
